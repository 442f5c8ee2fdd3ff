"""An interface of ours, a ``typing.Protocol`` or an abstract class, has at most eight methods.

Counted are methods and properties, private ones too, of the class and of its bases of ours. Not counted are
``__init__``, and what a base from outside prescribes, such as the callbacks of ``asyncio.Protocol``.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.tidy.sources import PACKAGES, ROOT, parsed, python_files

MOST_METHODS = 8
FRAMEWORK_BASES = {("typing", "Protocol"), ("typing", "Generic"), ("abc", "ABC")}
Method = ast.FunctionDef | ast.AsyncFunctionDef
ClassName = tuple[str, str]
"""A module and the name of a class in it."""


@dataclass(frozen=True)
class Declaration:
    """A class as its file declares it."""

    bases: tuple[ClassName, ...]
    methods: frozenset[str]
    is_interface: bool


@cache
def declarations() -> dict[ClassName, Declaration]:
    """Return every class of the product by its name."""
    return {
        (module, node.name): _declaration(module, tree, node)
        for module, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in python_files(*PACKAGES):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names = parts if parts[0] == "nemesis" else ("nemesis", *parts)
        yield ".".join(names).removesuffix(".__init__"), parsed(path)


def _declaration(module: str, tree: ast.Module, node: ast.ClassDef) -> Declaration:
    imported = {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for statement in ast.walk(tree)
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    written = [ast.unparse(_unsubscripted(base)) for base in node.bases]
    methods = [item for item in node.body if isinstance(item, Method)]
    is_abstract = any(
        "abstractmethod" in ast.unparse(decorator)
        for method in methods
        for decorator in method.decorator_list
    )
    return Declaration(
        bases=tuple(imported.get(base) or _dotted(module, base) for base in written),
        methods=frozenset(method.name for method in methods) - {"__init__"},
        is_interface=is_abstract or any(base in ("Protocol", "ABC") for base in written),
    )


def _unsubscripted(base: ast.expr) -> ast.expr:
    return base.value if isinstance(base, ast.Subscript) else base


def _dotted(module: str, base: str) -> ClassName:
    """Return the class that ``base`` names: ``package.Class`` of elsewhere, or ``Class`` of this module."""
    package, _, name = base.rpartition(".")
    return package or module, name


def methods_of(name: ClassName) -> set[str]:
    """Return the counted methods of a class of ours and of its bases of ours."""
    declaration = declarations()[name]
    methods, prescribed = set(declaration.methods), set[str]()
    for base in declaration.bases:
        if base in declarations():
            methods |= methods_of(base)
        elif base not in FRAMEWORK_BASES:
            prescribed |= _methods_from_outside(base)
    return methods - prescribed


def _methods_from_outside(base: ClassName) -> set[str]:
    module, name = base
    return set(dir(getattr(importlib.import_module(module), name, object)))


def interfaces() -> list[ClassName]:
    return sorted(name for name, declared in declarations().items() if declared.is_interface)


@pytest.mark.parametrize("name", interfaces(), ids=".".join)
def test_an_interface_has_at_most_eight_methods(name: ClassName) -> None:
    methods = methods_of(name)
    assert len(methods) <= MOST_METHODS, (
        f"{'.'.join(name)}: expected an interface of at most {MOST_METHODS} methods, got {len(methods)}:"
        f" {', '.join(sorted(methods))}. Split it along its ideas, and let each user take the part it needs."
    )


def test_interfaces_are_found_with_what_they_inherit() -> None:
    files = ("nemesis.reference.ports", "Files")
    protocol = ("nemesis.reference.network.frames", "FrameProtocol")
    assert {files, protocol} <= set(interfaces())
    assert {"append", "fsync"} <= methods_of(files)
    assert methods_of(protocol) == {"progressed"}
    channel = ("nemesis.reference.network.kafka_channel", "KafkaChannel")
    assert {"progressed", "send"} <= methods_of(channel)

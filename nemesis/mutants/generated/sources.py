"""The code that generated mutants change: modules of the reference, and their functions as trees.

Excluded are what only records (calls of loggers and tracers, assertions, texts of errors), what is not in a function
(annotations, constants of modules), and modules that both sides of a connection share or that no simulation runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

import nemesis.reference
from nemesis.support.errors import UsageError

ROOT: Final = Path(nemesis.reference.__path__[0])
DEFAULT_MODULES: Final = (
    "controller/*", "cluster/*", "server/replica*", "server/fetch*", "log/*", "zk/*",
)  # fmt: skip
EXCLUDED: Final = (
    "*__init__", "__main__", "adapters/*", "protocol/*", "trace", "ports", "*errors", "controller/trace_columns",
)  # fmt: skip
SILENT_NAMES: Final = frozenset({"_logger", "logger", "_tracer", "tracer", "trace"})
"""Calls through these names record something and change nothing."""
NOT_MUTATED: Final = frozenset({"__repr__", "__str__", "__hash__", "trace"})

COLUMNS: Final = 1000
"""More than a line has columns."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """An outermost function or a method, with what surrounds it."""

    module: str
    qualname: str
    node: FunctionNode
    tree: ast.Module
    class_name: str | None
    nodes: tuple[ast.AST, ...] = field(repr=False)
    """All nodes that may change, in the sequence of the source."""
    parents: dict[ast.AST, ast.AST] = field(repr=False)

    @property
    def first_line(self) -> int:
        """The line that Python gives to the code object: of the first decorator, if there is one."""
        return min([self.node.lineno, *(item.lineno for item in self.node.decorator_list)])

    @property
    def is_constructor(self) -> bool:
        return self.node.name in {"__init__", "__post_init__", "__new__"}

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that contains a node, or the node itself."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def unit_of(self, node: ast.AST) -> int:
        """Return the position of the innermost statement or branch of an expression that contains a node."""
        while not isinstance(node, ast.stmt):
            if isinstance(node, ast.expr) and node in branches(self.parents[node]):
                return position(node)
            node = self.parents[node]
        return position(node)

    def statements(self) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
        """Yield each statement that may change, with the block in which it stands."""
        for node in self.nodes:
            if isinstance(node, ast.stmt) and node in self.parents:
                yield node, self._block_of(node)

    def _block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        for _, value in ast.iter_fields(self.parents[statement]):
            if isinstance(value, list) and statement in value:
                return value
        raise AssertionError("a statement stands in a block of its parent")


def position(node: ast.expr | ast.stmt) -> int:
    """Return line and column as one number."""
    return node.lineno * COLUMNS + node.col_offset


def branches(node: ast.AST) -> list[ast.expr]:
    """Return the parts of an expression that run more or less often than the expression."""
    match node:
        case ast.BoolOp(values=[_, *others]):
            return others
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Lambda(body=body):
            return [body]
        case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
            return [element]
        case ast.DictComp(key=key, value=value):
            return [key, value]
        case ast.comprehension(ifs=conditions):
            return conditions
    return []


def module_names(globs: Sequence[str] = DEFAULT_MODULES) -> list[str]:
    """Return the modules that match, as ``controller/election``; raises ``UsageError`` for a glob without a match."""
    known = sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.py"))
    allowed = [name for name in known if not any(fnmatchcase(name, glob) for glob in EXCLUDED)]
    names: dict[str, None] = {}
    for glob in globs:
        pattern = glob.removeprefix("reference/").removesuffix(".py")
        pattern = pattern + "*" if pattern.endswith("/") else pattern
        matches = [name for name in allowed if fnmatchcase(name, pattern)]
        if not matches:
            raise UsageError(
                f"--module {glob}: expected a path under reference/ such as controller/* or log/log, "
                "got no module that can be mutated"
            )
        names.update(dict.fromkeys(matches))
    return sorted(names)


def import_name(module: str) -> str:
    """Return the name under which Python imports ``controller/election``."""
    return f"nemesis.reference.{module.replace('/', '.')}"


@cache
def tree_of(module: str) -> ast.Module:
    """Return the tree of a module of the reference. It is shared: copy it before a change."""
    return ast.parse((ROOT / f"{module}.py").read_text(encoding="utf-8"))


def functions(module: str, tree: ast.Module | None = None) -> Iterator[Function]:
    """Yield the outermost functions of a module, methods of its classes included."""
    tree = tree_of(module) if tree is None else tree
    yield from _functions_in(tree.body, module, tree, ())


def _functions_in(
    body: list[ast.stmt], module: str, tree: ast.Module, classes: tuple[str, ...]
) -> Iterator[Function]:
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield from _functions_in(node.body, module, tree, (*classes, name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name in NOT_MUTATED or name.startswith("_trace"):
                    continue
                parents: dict[ast.AST, ast.AST] = {}
                yield Function(
                    module=module,
                    qualname=".".join((*classes, name)),
                    node=node,
                    tree=tree,
                    class_name=classes[-1] if classes else None,
                    nodes=tuple(_mutable_below(node, parents)),
                    parents=parents,
                )


def _mutable_below(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in {
            "decorator_list",
            "annotation",
            "returns",
            "args",
            "type_comment",
        } and isinstance(node, FunctionNode | ast.AnnAssign | ast.arg | ast.Lambda):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                parents[child] = node
                if not _is_excluded(child):
                    yield child
                    yield from _mutable_below(child, parents)


def _is_excluded(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.Raise() | ast.JoinedStr() | ast.pattern() | ast.ClassDef():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call() | ast.Await() as value):
            call = value.value if isinstance(value, ast.Await) else value
            return isinstance(call, ast.Call) and is_silent(call)
        case ast.Call():
            return is_silent(node)
    return False


def is_silent(call: ast.Call) -> bool:
    """Return whether a call only records: of a logger or a tracer, or a method that is named after tracing."""
    function = call.func
    names = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    is_traced = isinstance(function, ast.Attribute) and function.attr.startswith("_trace")
    return is_traced or bool(names & SILENT_NAMES)

"""Plants a generated mutant in this process: the function's ``__code__`` is replaced by that of a changed module.

The whole module is compiled with the change, and the code object with the same qualified name and first line is
assigned to the functions that exist. Aliases, decorators, properties, slots and ``super()`` need no care: they all
lead to the same function object. What is in a nested function or comprehension is a constant of the outermost
function's code and changes with it. Python demands equal free variables; we also demand the same kind of function.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType
from typing import Final

from nemesis.mutants.base import MutantError
from nemesis.mutants.generated.mutation import Mutation
from nemesis.mutants.generated.sources import ROOT, import_name, module_names, tree_of
from nemesis.mutants.generated.trees import copied
from nemesis.mutants.probe import NAME, Probe

KIND: Final = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
)  # fmt: skip
"""The flags of a code object that callers depend on."""

CodeKey = tuple[str, str, int]
"""Module as Python imports it, qualified name, first line."""


@contextmanager
def planted(mutation: Mutation, probe: Probe) -> Iterator[None]:
    """Carry the mutant inside the block; raises ``MutantError`` when its function does not exist."""
    targets = functions_by_code().get(_key(mutation), [])
    if not targets:
        raise MutantError(
            f"{mutation.name}: expected a function {mutation.function} in {import_name(mutation.module)}, got none"
        )
    module = importlib.import_module(import_name(mutation.module))
    code = mutated_code(mutation)
    originals = [target.__code__ for target in targets]
    setattr(module, NAME, probe)
    for target in targets:
        target.__code__ = code
    try:
        yield
    finally:
        for target, original in zip(targets, originals, strict=True):
            target.__code__ = original
        delattr(module, NAME)


def is_plantable(mutation: Mutation) -> bool:
    """Return whether the changed function compiles and can stand in for the original."""
    try:
        mutant, original = mutated_code(mutation), _code_in(tree_of(mutation.module), mutation)
    except SyntaxError:
        return False
    return (
        mutant.co_freevars == original.co_freevars
        and mutant.co_flags & KIND == original.co_flags & KIND
    )


def mutated_code(mutation: Mutation) -> CodeType:
    """Return the code object of the changed function."""
    tree = copied(tree_of(mutation.module), mutation.change.replacements)
    return _code_in(ast.fix_missing_locations(tree), mutation)


def _code_in(tree: ast.Module, mutation: Mutation) -> CodeType:
    wanted = (mutation.function, mutation.function_line)
    for code in code_objects(compiled(tree, mutation.module)):
        if (code.co_qualname, code.co_firstlineno) == wanted:
            return code
    raise MutantError(f"{mutation.name}: the compiled module has no code of this function")


def compiled(tree: ast.Module, module: str) -> CodeType:
    """Return the code of a module's tree."""
    return compile(tree, str(ROOT / f"{module}.py"), "exec", dont_inherit=True)


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects inside another."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from code_objects(constant)


def _key(mutation: Mutation) -> CodeKey:
    return import_name(mutation.module), mutation.function, mutation.function_line


@cache
def functions_by_code() -> dict[CodeKey, list[FunctionType]]:
    """Return the functions of the reference that exist in this process, also those that a decorator hides."""
    for module in module_names(("*",)):
        importlib.import_module(import_name(module))
    result: dict[CodeKey, list[FunctionType]] = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType and str(thing.__module__).startswith("nemesis.reference."):
            code = thing.__code__
            result[thing.__module__, code.co_qualname, code.co_firstlineno].append(thing)
    return dict(result)

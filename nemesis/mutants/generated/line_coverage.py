"""Which statements of the reference, and which branches of expressions, a run executes.

A mutant's run is that of the reference until the changed code runs for the first time. So a statement that the
reference does not execute under a scenario and seed is not reached by a mutant there, and the run can be saved.

Each module is compiled a second time with a call before each statement of a function, and before each operand of
``and`` and ``or``, branch, and element of a comprehension; it is planted as mutants are. That
costs a run a tenth of its time. Python's trace function, which is called for each call of all other code, too, costs
four times the run; Python 3.11 has no ``sys.monitoring``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType
from typing import Final

from nemesis.mutants.generated.planting import code_objects, compiled, functions_by_code
from nemesis.mutants.generated.sources import (
    branches,
    import_name,
    module_names,
    position,
    tree_of,
)
from nemesis.mutants.generated.trees import constant, copied

NAME: Final = "__nemesis_line__"
BLOCKS: Final = ("body", "orelse", "finalbody")


@contextmanager
def recorded_lines() -> Iterator[Callable[[], dict[str, list[int]]]]:
    """Record inside the block; yields what returns where executed code begins, by module."""
    lines: dict[str, set[int]] = {module: set() for module in module_names(("*",))}
    originals: list[tuple[FunctionType, CodeType]] = []
    for function, module, code in _instrumented():
        originals.append((function, function.__code__))
        function.__globals__[NAME] = lines[module].add
        function.__code__ = code
    try:
        yield lambda: {module: sorted(numbers) for module, numbers in lines.items() if numbers}
    finally:
        for function, original in originals:
            function.__code__ = original
            function.__globals__.pop(NAME, None)


def prepare() -> None:
    """Import the reference, find its functions and compile them, so that processes that are forked later need not."""
    _instrumented()


@cache
def _instrumented() -> list[tuple[FunctionType, str, CodeType]]:
    """Return each function with its module and its instrumented code."""
    functions = functions_by_code()
    result = []
    for module in module_names(("*",)):
        tree = copied(tree_of(module))
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        _wrap_branches({inner: None for node in nodes for inner in ast.walk(node)})
        for node in nodes:
            _instrument(node)
        for code in code_objects(compiled(ast.fix_missing_locations(tree), module)):
            key = (import_name(module), code.co_qualname, code.co_firstlineno)
            result += [
                (function, module, code)
                for function in functions.get(key, ())
                if function.__code__.co_freevars == code.co_freevars
            ]
    return result


def _instrument(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Put a call before each statement of a function, but not of a function or class inside of it."""
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        for name in BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                setattr(node, name, list(_with_calls(block)))
                pending += [item for item in block if not isinstance(item, _OTHERS)]
        pending += [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]


_OTHERS: Final = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _with_calls(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    for index, statement in enumerate(block):
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (is_docstring and index == 0):
            yield ast.copy_location(ast.Expr(_call(statement)), statement)
        yield statement


def _call(node: ast.expr | ast.stmt) -> ast.Call:
    return ast.Call(ast.Name(NAME, ast.Load()), [constant(position(node))], [])


def _wrap_branches(nodes: Iterable[ast.AST]) -> None:
    """Put a call, which returns None, before each branch of an expression: ``call() or branch``."""
    for node in nodes:
        parts = branches(node)
        for name, value in ast.iter_fields(node) if parts else ():
            if isinstance(value, list):
                setattr(node, name, [_wrapped(item) if item in parts else item for item in value])
            elif value in parts:
                setattr(node, name, _wrapped(value))


def _wrapped(branch: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.Or(), [_call(branch), branch])

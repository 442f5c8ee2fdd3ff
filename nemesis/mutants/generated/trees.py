"""Small helpers over Python's syntax trees: calls of the probe, copies with replaced nodes, what an expression does."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Mapping
from types import EllipsisType
from typing import Final, TypeVar

from nemesis.mutants.probe import NAME

Node = TypeVar("Node", bound=ast.AST)

PURE_CALLS: Final = frozenset(
    {"len", "min", "max", "sorted", "frozenset", "set", "tuple", "isinstance", "sum"}
)
_PURE: Final = (
    ast.Name, ast.Constant, ast.Attribute, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Subscript,
    ast.Tuple, ast.IfExp, ast.operator, ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context,
)  # fmt: skip


def probe_call(
    method: Callable[..., object], *arguments: ast.expr, **keywords: ast.expr
) -> ast.Call:
    """Return the call of a method of the probe."""
    function = ast.Attribute(ast.Name(NAME, ast.Load()), method.__name__, ast.Load())
    named = [ast.keyword(name, value) for name, value in keywords.items()]
    return ast.Call(function, list(arguments), named)


def constant(value: bool | float | str | EllipsisType | None) -> ast.Constant:
    return ast.Constant(value)


def copied(node: Node, replacements: Mapping[ast.AST, ast.AST] | None = None) -> Node:
    """Return a deep copy in which some nodes are replaced by others, which are not copied."""
    memo: dict[int, ast.AST] = {id(old): new for old, new in (replacements or {}).items()}
    return copy.deepcopy(node, memo)


def loaded(target: ast.expr) -> ast.expr:
    """Return the expression that reads what ``target`` writes."""
    result = copied(target)
    result.ctx = ast.Load()  # type: ignore[attr-defined]
    return result


def left_out(test: ast.expr, statement: ast.stmt) -> ast.If:
    """Return the statement behind a test that is always false.

    It stays in the code so that free variables and the kind of function (generator, coroutine) stay what they were.
    """
    return ast.If(test, [copied(statement)], [])


def sequence(statements: Iterable[ast.stmt]) -> ast.If:
    """Return several statements as one."""
    return ast.If(constant(True), list(statements), [])


def is_pure(expression: ast.expr) -> bool:
    """Return whether evaluating it twice, or without need, changes nothing. Properties count as pure."""
    return all(
        isinstance(node, _PURE)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in PURE_CALLS
            and not node.keywords
        )
        for node in ast.walk(expression)
    )


def is_chain(expression: ast.expr) -> bool:
    """Return whether it is a name, or attributes of a name: ``self.state.isr``."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name)


def names_loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_stored(node: ast.AST) -> set[str]:
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }


def attributes_loaded(node: ast.AST) -> set[str]:
    return {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
    }


def attributes_stored(node: ast.AST) -> set[str]:
    return {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    }


def has_call(node: ast.AST) -> bool:
    """Return whether other code runs: a call, or a wait for another task."""
    return any(
        isinstance(n, ast.Call | ast.Await | ast.Yield | ast.YieldFrom) for n in ast.walk(node)
    )

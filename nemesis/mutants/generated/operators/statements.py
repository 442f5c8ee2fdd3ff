"""Statements that are left out: assignments, resets, calls for their effect.

The values of a left-out assignment are still computed, with their side effects, and compared with what stays in
force. A left-out call does not compute its arguments: the call is gone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import (
    constant,
    copied,
    is_pure,
    left_out,
    loaded,
    probe_call,
)
from nemesis.mutants.probe import Probe

RESETS: Final = frozenset({"clear", "reset", "cancel"})
REMOVALS: Final = frozenset({"discard", "remove", "pop"})
EMPTY_CALLS: Final = frozenset({"set", "dict", "list", "frozenset", "deque"})
REPEATABLE: Final = ast.Add | ast.Sub | ast.BitOr | ast.BitAnd


def dropped_statements(function: Function) -> Iterator[Change]:
    """An assignment to an attribute or item, a change of a variable, or a ``del`` is left out.

    Effective: the assigned value differs from the one that stays; a ``del``: it ran.
    """
    return _left_out(function, resets=False)


def missing_resets(function: Function) -> Iterator[Change]:
    """An assignment of None, False, 0 or something empty, or ``clear``, ``reset`` or ``cancel``, is left out.

    Effective: the assigned value differs from the one that stays; ``clear``: a container was not empty; others: it ran.
    """
    yield from _left_out(function, resets=True)
    for node, call in _calls(function):
        if isinstance(call.func, ast.Attribute) and call.func.attr in RESETS:
            yield _change(node, _call_test(call))


def skipped_effects(function: Function) -> Iterator[Change]:
    """A call for its effect is left out, awaited or not.

    Effective: it ran in the original; ``add``, ``discard``, ``remove`` and ``pop``: it would have changed the set.
    """
    for node, call in _calls(function):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr in RESETS):
            yield _change(node, _call_test(call))


def _change(node: ast.stmt, test: ast.expr) -> Change:
    return Change(node, ast.unparse(node), "pass", {node: left_out(test, node)})


def _calls(function: Function) -> Iterator[tuple[ast.Expr, ast.Call]]:
    for node in function.nodes:
        match node:
            case (
                ast.Expr(value=ast.Call() as call)
                | ast.Expr(value=ast.Await(value=ast.Call() as call))
            ):
                if "super" not in {n.id for n in ast.walk(call.func) if isinstance(n, ast.Name)}:
                    yield node, call


def _call_test(call: ast.Call) -> ast.expr:
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="clear"), args=[]) if is_pure(owner):
            return probe_call(Probe.clear_left_out, copied(owner))
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[item, *_]) if is_pure(
            owner
        ) and is_pure(item):
            if name in REMOVALS:
                return probe_call(Probe.removal_left_out, copied(owner), copied(item))
            if name == "add":
                return probe_call(Probe.addition_left_out, copied(owner), copied(item))
    return probe_call(Probe.left_out)


def _left_out(function: Function, *, resets: bool) -> Iterator[Change]:
    if function.is_constructor:
        return
    for node in function.nodes:
        test: ast.expr | None = None
        value: ast.expr | None = None
        match node:
            case ast.Assign(targets=targets, value=value):
                test = _assignment_test(targets, copied(value))
            case ast.AnnAssign(target=ast.Attribute() as target, value=ast.expr() as value):
                test = _assignment_test([target], copied(value))
            case ast.AugAssign(target=ast.Name(), value=change):
                test = probe_call(Probe.change_left_out, copied(change))
            case ast.AugAssign(target=target, op=operator, value=change) if isinstance(
                operator, REPEATABLE
            ) and is_pure(target):
                result = ast.BinOp(loaded(target), operator, copied(change))
                test = _assignment_test([target], result)
            case ast.Delete():
                test = probe_call(Probe.left_out)
        if isinstance(node, ast.stmt) and test is not None and _is_reset(value) is resets:
            yield _change(node, test)


def _assignment_test(targets: list[ast.expr], value: ast.expr) -> ast.expr | None:
    """Return the test that compares; None for targets whose loss is not compared (variables, tuples, slices)."""
    match targets:
        case [ast.Subscript(value=container, slice=key)] if (
            is_pure(container) and is_pure(key) and not isinstance(key, ast.Slice)
        ):
            return probe_call(Probe.item_left_out, value, copied(container), copied(key))
    pairs: list[ast.expr] = []
    for target in targets:
        if not isinstance(target, ast.Attribute) or not is_pure(target.value):
            return None
        pair = [copied(target.value), constant(target.attr)]
        pairs.append(ast.Tuple(pair, ast.Load()))
    return probe_call(Probe.attributes_left_out, value, *pairs)


def _is_reset(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=None | False | 0 | "" | b""):
            return True
        case ast.Dict(keys=[]) | ast.List(elts=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in EMPTY_CALLS
    return False

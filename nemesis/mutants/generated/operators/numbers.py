"""Numbers: one more or one less, and time-outs that are ten times as long or as short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.operators.name_types import types_of
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import constant, copied, probe_call
from nemesis.mutants.probe import Probe

STEPS: Final = (1, -1)
LARGEST_CONSTANT: Final = 100
"""Larger numbers are sizes, factors or bits, for which one more is not an off-by-one error."""
SCALES: Final = ((10, 1), (1, 10))
"""Factor and divisor of a time-out."""
_COUNTED: Final = re.compile(
    r"(offset|epoch|size|count|position|bytes|version|end|start|base|length)s?$"
)
_USERS: Final = ast.BinOp | ast.Compare | ast.Subscript | ast.Slice | ast.Call | ast.Return
"""What a number may stand in."""
_TAKERS: Final = ast.Call | ast.keyword | ast.Assign | ast.Return
"""What a variable may stand in."""
_DURATION: Final = re.compile(r"(_ms|_s|timeout|backoff|interval|max_lag|linger)$")
_POINT_IN_TIME: Final = re.compile(
    r"(now|timestamp|time|deadline|since|at|until|oldest|newest|last)(_ms|_s)?$"
)


def off_by_one(function: Function) -> Iterator[Change]:
    """A small whole number, or a variable that counts, becomes one more or one less.

    Effective: in a comparison, it gave another answer; in other code always, as the value is another one.
    """
    for node in function.nodes:
        if isinstance(node, ast.expr) and _is_counted(function, node):
            for step in STEPS:
                yield _stepped(function, node, step)


def _is_counted(function: Function, node: ast.expr) -> bool:
    parent = function.parents[node]
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int(value)):
            is_factor = isinstance(parent, ast.BinOp) and not isinstance(
                parent.op, ast.Add | ast.Sub
            )
            return abs(value) <= LARGEST_CONSTANT and isinstance(parent, _USERS) and not is_factor
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            is_argument = isinstance(parent, _TAKERS) and getattr(parent, "func", None) is not node
            is_named = is_argument and _COUNTED.search(name) is not None
            return is_named and types_of(function).of(node) == "int"
    return False


def _stepped(function: Function, node: ast.expr, step: int) -> Change:
    parent = function.parents[node]
    changed = _changed(node, step)
    outer = parent if isinstance(parent, ast.expr | ast.keyword | ast.Return) else node
    texts = ast.unparse(outer), ast.unparse(copied(outer, {node: changed}))
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
        side = "left" if parent.left is node else "right"
        probed = probe_call(
            Probe.compared_with,
            constant(type(parent.ops[0]).__name__),
            copied(parent.left),
            copied(parent.comparators[0]),
            changed,
            constant(side),
        )
        return Change(node, *texts, {parent: probed})
    return Change(node, *texts, {node: probe_call(Probe.stepped, copied(node), constant(step))})


def _changed(node: ast.expr, step: int) -> ast.expr:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return constant(node.value + step)
    return ast.BinOp(copied(node), ast.Add() if step > 0 else ast.Sub(), constant(abs(step)))


def time_outs(function: Function) -> Iterator[Change]:
    """A time-out, back-off or interval becomes ten times as long, or a tenth. Effective: it is another number."""
    for node in function.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                if _is_duration(name) and not _is_called(function, node):
                    for factor, divisor in SCALES:
                        probed = probe_call(
                            Probe.scaled, copied(node), constant(factor), constant(divisor)
                        )
                        text = ast.unparse(node)
                        changed = f"{text} * {factor}" if factor > 1 else f"{text} / {divisor}"
                        yield Change(node, text, changed, {node: probed})


def _is_duration(name: str) -> bool:
    plain = name.lower().lstrip("_")
    return _DURATION.search(plain) is not None and _POINT_IN_TIME.search(plain) is None


def _is_called(function: Function, node: ast.expr) -> bool:
    parent = function.parents[node]
    is_owner = isinstance(parent, ast.Attribute)
    return is_owner or (isinstance(parent, ast.Call) and parent.func is node)

"""Guards: an early exit that never happens, a condition that is ignored.

The condition is still evaluated, with its side effects; only its answer is ignored. So the counters are exact.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import constant, copied, probe_call
from nemesis.mutants.probe import Probe

EXITS = ast.Return | ast.Raise | ast.Continue | ast.Break


def dropped_guards(function: Function) -> Iterator[Change]:
    """An ``if`` that leaves the block, without ``else``, never does. Effective: its condition was true."""
    for node in function.nodes:
        match node:
            case ast.If(orelse=[], body=[*_, last]) if isinstance(last, EXITS):
                probed = probe_call(Probe.suppressed, copied(node.test))
                text = f"if {ast.unparse(node.test)}: {ast.unparse(last)}"
                yield Change(node, text, "pass", {node.test: probed})


def ignored_conditions(function: Function) -> Iterator[Change]:
    """A part of an ``and`` counts as true, of an ``or`` as false, a filter of a comprehension as true.

    Effective: its value was another one, and was asked for.
    """
    for node in function.nodes:
        match node:
            case ast.BoolOp() if _is_condition(function, node):
                for operand in node.values:
                    others = [value for value in node.values if value is not operand]
                    rest = others[0] if len(others) == 1 else ast.BoolOp(node.op, others)
                    yield _ignored(node, operand, rest, instead=isinstance(node.op, ast.And))
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    yield _ignored(condition, condition, constant(True), instead=True)


def _ignored(whole_node: ast.expr, operand: ast.expr, rest: ast.expr, *, instead: bool) -> Change:
    probed = probe_call(Probe.ignored, copied(operand), instead=constant(instead))
    return Change(operand, ast.unparse(whole_node), ast.unparse(rest), {operand: probed})


def _is_condition(function: Function, node: ast.expr) -> bool:
    """Return whether only the truth of an expression matters, not its value."""
    match function.parents[node]:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return test is node
        case ast.UnaryOp(op=ast.Not()) | ast.comprehension():
            return True
        case ast.BoolOp() as outer:
            return _is_condition(function, outer)
    return isinstance(node, ast.BoolOp) and all(map(_is_truth_value, node.values))


def _is_truth_value(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(map(_is_truth_value, values))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) | ast.Attribute(attr=name):
            return name.lstrip("_").startswith(("is_", "has_", "isinstance"))
    return False

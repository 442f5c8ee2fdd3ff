"""Comparisons: another boundary, another operator.

Both operands of a single comparison are evaluated once; of a chain only operands without side effects are changed,
because the chain would otherwise evaluate more of them than the original.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import constant, copied, is_pure, probe_call
from nemesis.mutants.probe import Probe

BOUNDARIES: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
OTHERS: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def boundaries(function: Function) -> Iterator[Change]:
    """``<`` becomes ``<=``, and so on. Effective: the comparison gave another answer."""
    return _changed(function, BOUNDARIES)


def comparisons(function: Function) -> Iterator[Change]:
    """``<`` becomes ``>``, ``==`` becomes ``!=``, ``is`` and ``in`` likewise. Effective: it gave another answer."""
    return _changed(function, OTHERS)


def _changed(
    function: Function, operators: Mapping[type[ast.cmpop], type[ast.cmpop]]
) -> Iterator[Change]:
    for node in function.nodes:
        if not isinstance(node, ast.Compare):
            continue
        for position, present in enumerate(node.ops):
            other = operators.get(type(present))
            if other is None:
                continue
            ops = [*node.ops[:position], other(), *node.ops[position + 1 :]]
            probed = _probed(node, ops)
            if probed is not None:
                changed = ast.Compare(node.left, ops, node.comparators)
                yield Change(node, ast.unparse(node), ast.unparse(changed), {node: probed})


def _probed(node: ast.Compare, ops: list[ast.cmpop]) -> ast.expr | None:
    operands = [copied(operand) for operand in (node.left, *node.comparators)]
    before, after = ([type(operator).__name__ for operator in both] for both in (node.ops, ops))
    if len(ops) == 1:
        return probe_call(Probe.compared, constant(before[0]), constant(after[0]), *operands)
    if all(map(is_pure, operands)):
        return probe_call(Probe.chained, _names(before), _names(after), *operands)
    return None


def _names(names: list[str]) -> ast.Tuple:
    return ast.Tuple([constant(name) for name in names], ast.Load())

"""Two neighbouring statements in the other sequence.

Pairs that certainly commute, or that the other sequence would only crash, are left out: both statements must touch what
others can observe, and neither uses a variable that the other assigns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import (
    attributes_loaded,
    attributes_stored,
    copied,
    has_call,
    names_loaded,
    names_stored,
    probe_call,
    sequence,
)
from nemesis.mutants.probe import Probe

SIMPLE = ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete


def swapped_statements(function: Function) -> Iterator[Change]:
    """Two neighbouring statements are swapped.

    Effective: they ran. That is an upper bound: whether two effects commute cannot be observed where they stand.
    """
    if function.is_constructor:
        return
    blocks = {id(block): block for _, block in function.statements()}
    allowed = set(function.nodes)
    for block in blocks.values():
        for first, second in pairwise(block):
            both_simple = isinstance(first, SIMPLE) and isinstance(second, SIMPLE)
            if both_simple and {first, second} <= allowed and _may_matter(first, second):
                yield _swapped(first, second)


def _may_matter(first: ast.stmt, second: ast.stmt) -> bool:
    stored = names_stored(first), names_stored(second)
    if stored[0] & (names_loaded(second) | stored[1]) or stored[1] & names_loaded(first):
        return False
    return _disturbs(first, second) or _disturbs(second, first)


def _disturbs(writer: ast.stmt, other: ast.stmt) -> bool:
    """Return whether what one statement changes may be what the other reads or changes."""
    if isinstance(writer, ast.Expr | ast.Delete) or any(
        isinstance(node, ast.Await) for node in ast.walk(writer)
    ):
        return has_call(other) or bool(attributes_loaded(other) | attributes_stored(other))
    changed = attributes_stored(writer)
    return bool(changed) and (
        isinstance(other, ast.Expr)
        or bool(changed & (attributes_loaded(other) | attributes_stored(other)))
    )


def _swapped(first: ast.stmt, second: ast.stmt) -> Change:
    counted = ast.Expr(probe_call(Probe.swapped))
    texts = [ast.unparse(statement) for statement in (first, second)]
    return Change(
        first,
        "; ".join(texts),
        "; ".join(reversed(texts)),
        {first: sequence([counted, copied(second), copied(first)]), second: ast.Pass()},
    )

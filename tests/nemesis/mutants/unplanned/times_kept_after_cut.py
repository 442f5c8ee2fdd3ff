"""A truncation leaves the entries of the time index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, int], None]:
    del correct
    return lambda self, offset: None


MUTANT = Mutant(
    name="times-kept-after-cut",
    property="times-answered",
    summary="a truncation leaves the entries of the time index",
    replacements=(Replacement("nemesis.reference.log.time_index", "TimeIndex.truncate_to", wrong),),
    scenario="partition-controller",
)
"""The bug."""

"""The value that registers have before any write: stated, or concluded from reads that no write can have preceded.

A history does not contain the initial value. Without ``--initial`` it is ``nil``. A read that ended before any write of
its key began shows it, though: if all such reads return one and the same value, and no operation writes that value to
their keys, the value can only be the initial one. Then the run is judged with this value. A violation that shows is
certain: if the initial value was another one, these reads returned what no operation wrote. Otherwise the run is
``unknown``, and the sentence names the value to state. Several such values, or a value that some operation writes, are
not concluded from. Nor are reads of keys that no operation writes, alone: what they return has no source at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET

NEVER: Final = np.iinfo(np.int64).max
NIL: Final = UNSET
"""The initial value that is ``nil``."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What reads returned. Arrays of one length."""

    key: Numbers
    """Small numbers from 0."""
    value: Numbers
    """``NIL`` of a read of nothing."""
    finish: Numbers
    owner: Numbers
    """The operation or transaction that made it."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was, or may have been, written; writes that failed are included. Arrays of one length."""

    key: Numbers
    """The same numbers."""
    value: Numbers
    start: Numbers
    owner: Numbers


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The value that can only be the initial one."""

    value: int
    position: int
    """The first of the reads that show it, in ``Observed``."""

    @property
    def sentence(self) -> str:
        return (
            f"Reads that ended before any write of their key began returned {self.value}, which no operation writes: "
            f"pass --initial {self.value}."
        )


def suggested(observed: Observed, changes: Changes) -> Suggestion | None:
    """Return the initial value that the reads show; None if they show nil, several values or none."""
    bound = _first_starts(observed, changes)
    early = np.flatnonzero(observed.finish < bound)
    values = np.unique(observed.value[early])
    if len(values) != 1 or values[0] == NIL or not np.isin(observed.key[early], changes.key).any():
        return None
    written = changes.key[changes.value == values[0]]
    if np.isin(observed.key[early], written).any():
        return None
    return Suggestion(int(values[0]), int(early[np.argmin(observed.finish[early])]))


def _first_starts(observed: Observed, changes: Changes) -> Numbers:
    """For each read when the first write of its key by another operation began; ``NEVER`` without such a write."""
    keys = 1 + max(int(observed.key.max(initial=-1)), int(changes.key.max(initial=-1)))
    first, second = np.full(keys, NEVER), np.full(keys, NEVER)
    np.minimum.at(first, changes.key, changes.start)
    first_owner = np.full(keys, -1, dtype=np.int64)
    is_first = changes.start == first[changes.key]
    first_owner[changes.key[is_first]] = changes.owner[is_first]
    others = changes.owner != first_owner[changes.key]
    np.minimum.at(second, changes.key[others], changes.start[others])
    is_own = first_owner[observed.key] == observed.owner
    starts: Numbers = np.where(is_own, second[observed.key], first[observed.key])
    return starts

"""Whether one order of all operations explains what the reads of a set that only grows returned.

Such reads form a chain: of any two, one returned all that the other did. So they are ranked by how much they returned,
and each add has its place in the chain: before the first read with its element. All other orders that time demands are
those of one element and one read, which ``set_states`` looks at, but for this one: an add that had ended before another
one began has no later place than it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.elements import NONE, at
from nemesis.checkers.linearizable.object_operations import NEVER, OK, Operations
from nemesis.checkers.linearizable.set_states import READ, SetStates


@dataclass(frozen=True, slots=True)
class SetOrder:
    """What contradicts every order. Positions of elements and of operations."""

    apart: Numbers
    """Elements that one read returned and a read of as many elements or more did not: ..."""
    having: Numbers
    """... the read that did, ..."""
    lacking: Numbers
    """... and the one that did not."""
    overtaking: Numbers
    """Elements that a read returned without one whose add had ended before theirs began: ..."""
    overtaken: Numbers
    """... that one, ..."""
    seen_by: Numbers
    """... and the read. Only of sets whose reads form a chain."""

    @classmethod
    def of(cls, operations: Operations, states: SetStates) -> SetOrder:
        chain = _Chain.of(operations, states)
        apart = np.flatnonzero(chain.missing < chain.end)
        is_chain = ~np.isin(states.key, states.key[apart])
        overtaking, overtaken = _overtaken(operations, states, chain.place, is_chain)
        return cls(
            apart=apart,
            having=chain.reads[chain.place[apart]],
            lacking=chain.reads[chain.missing[apart]],
            overtaking=overtaking,
            overtaken=overtaken,
            seen_by=chain.reads[chain.place[overtaken] - 1],
        )


@dataclass(frozen=True, slots=True)
class _Chain:
    """All reads, set by set, by how many elements they returned."""

    reads: Numbers
    place: Numbers
    """For each element the place of the first read that returned it; the end of its set's reads if none did."""
    missing: Numbers
    """The place of the first read after that which did not."""
    end: Numbers

    @classmethod
    def of(cls, operations: Operations, states: SetStates) -> _Chain:
        reads = np.flatnonzero((operations.f == READ) & (operations.outcome == OK))
        total = max(len(operations), 1)
        pairs = np.unique(states.returned * total + states.returned_by)
        element, by = pairs // total, pairs % total
        sizes = np.bincount(by, minlength=total)
        rows = operations.completed[reads]
        reads = reads[np.lexsort((rows, sizes[reads], operations.key[reads]))]
        place_of = np.full(total, NONE, dtype=np.int64)
        place_of[reads] = np.arange(len(reads))
        end = np.searchsorted(operations.key[reads], states.key, side="right")
        places = place_of[by]
        order = np.lexsort((places, element))
        element, places = element[order], places[order]
        first = np.searchsorted(element, element, side="left")
        is_in_run = places - places[first] == np.arange(len(element)) - first
        run = np.bincount(element[is_in_run], minlength=len(states.key))
        place = end.copy()
        place[element[first]] = places[first]
        return cls(reads, place, place + run, end)


def _overtaken(
    operations: Operations, states: SetStates, place: Numbers, is_chain: Mask
) -> tuple[Numbers, Numbers]:
    """Return elements whose adds began after the successful add of an element with a later place, and that element."""
    acknowledged = at(operations.finish, states.puts.succeeded, NEVER)
    begun = at(operations.start, states.puts.attempted, NEVER)
    chosen = np.flatnonzero(is_chain & (states.puts.attempted != NONE))
    chosen = chosen[np.lexsort((acknowledged[chosen], -place[chosen], states.key[chosen]))]
    _, key = np.unique(states.key[chosen], return_inverse=True)
    moments, ranks = np.unique(
        np.concatenate((acknowledged[chosen], begun[chosen])), return_inverse=True
    )
    # A set's ranks are below those of the sets before it, so that one running minimum does for all.
    ranks = ranks.astype(np.int64) - np.tile(key * len(moments), 2)
    finish, start = np.split(ranks, 2)
    earliest = np.minimum.accumulate(finish)
    is_new = np.ones(len(chosen), dtype=np.bool_)
    is_new[1:] = (np.diff(place[chosen]) != 0) | (np.diff(key) != 0)
    group = np.flatnonzero(is_new)[np.cumsum(is_new) - 1]
    before = np.append(earliest, NEVER)[group - 1]
    found = np.flatnonzero(before < start)
    # Where the running minimum was reached: it falls there for the first time.
    reached = np.searchsorted(-earliest, -before[found], side="left")
    return chosen[found], chosen[reached]

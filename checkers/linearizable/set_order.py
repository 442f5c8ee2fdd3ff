"""Whether one order of all operations explains what the reads of a set that only grows returned.

Such reads form a chain: of any two, one returned all that the other did. So they are ranked by how much they returned,
and each add has its place in the chain: before the first read with its element. All other orders that time demands are
those of one element and one read, which ``set_states`` looks at, except this one: an add that had ended before another
one began has no later place than it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.elements import NONE, values_at
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
    witness_read: Numbers
    """... and the read. Only of sets whose reads form a chain."""

    @classmethod
    def of(cls, operations: Operations, states: SetStates) -> SetOrder:
        chain = _Chain.of(operations, states)
        apart = np.flatnonzero(chain.missing < chain.end)
        is_chain = ~np.isin(states.key, states.key[apart])
        overtaking, overtaken = _overtaken(operations, states, chain.position, is_chain)
        return cls(
            apart=apart,
            having=chain.reads[chain.position[apart]],
            lacking=chain.reads[chain.missing[apart]],
            overtaking=overtaking,
            overtaken=overtaken,
            witness_read=chain.reads[chain.position[overtaken] - 1],
        )


@dataclass(frozen=True, slots=True)
class _Chain:
    """All reads, set by set, by how many elements they returned."""

    reads: Numbers
    position: Numbers
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
        position_of = np.full(total, NONE, dtype=np.int64)
        position_of[reads] = np.arange(len(reads))
        end = np.searchsorted(operations.key[reads], states.key, side="right")
        positions = position_of[by]
        permutation = np.lexsort((positions, element))
        element, positions = element[permutation], positions[permutation]
        first = np.searchsorted(element, element, side="left")
        is_in_run = positions - positions[first] == np.arange(len(element)) - first
        run = np.bincount(element[is_in_run], minlength=len(states.key))
        position = end.copy()
        position[element[first]] = positions[first]
        return cls(reads, position, position + run, end)


def _overtaken(
    operations: Operations, states: SetStates, position: Numbers, is_chain: Mask
) -> tuple[Numbers, Numbers]:
    """Return elements whose adds began after the successful add of an element with a later place, and that element."""
    acknowledged = values_at(operations.finish, states.puts.succeeded, NEVER)
    begun = values_at(operations.start, states.puts.attempted, NEVER)
    chosen = np.flatnonzero(is_chain & (states.puts.attempted != NONE))
    chosen = chosen[np.lexsort((acknowledged[chosen], -position[chosen], states.key[chosen]))]
    _, key = np.unique(states.key[chosen], return_inverse=True)
    times, ranks = np.unique(
        np.concatenate((acknowledged[chosen], begun[chosen])), return_inverse=True
    )
    # A set's ranks are below those of the sets before it, so that one running minimum does for all.
    ranks = ranks.astype(np.int64) - np.tile(key * len(times), 2)
    finish, start = np.split(ranks, 2)
    earliest = np.minimum.accumulate(finish)
    is_new = np.ones(len(chosen), dtype=np.bool_)
    is_new[1:] = (np.diff(position[chosen]) != 0) | (np.diff(key) != 0)
    group = np.flatnonzero(is_new)[np.cumsum(is_new) - 1]
    before = np.append(earliest, NEVER)[group - 1]
    overtaken = np.flatnonzero(before < start)
    # Where the running minimum was reached: it falls there for the first time.
    reached = np.searchsorted(-earliest, -before[overtaken], side="left")
    return chosen[overtaken], chosen[reached]

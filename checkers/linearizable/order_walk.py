"""Orders of the operations on registers, for all keys at once, by a compiled search.

What it proves is one thing: that the operations of a key can be put into an order. It finds the order, operation by
operation. A key without one, or of which the search gives up, is left to ``search``, which proves misfits and names
them. So a mistake in the pruning here costs time, and never a verdict.

The search is that of ``depth_search``: an operation may be next if nothing that is still to be put had ended before
it began; the last operation is taken back where it cannot go on; a configuration is tried once. A configuration is the
state, the operations that are put (all below a base, and a word of 64 bits above it) and the operations of unknown
outcome among them (another word). An operation that only looks is never taken back alone: it changes nothing, so
putting it as early as possible allows as much. An operation of unknown outcome need not happen: it is put only where an
operation that may be next needs what it gives, because otherwise it can be put later, or left out.

To import this module takes half a second, for numba's sake: it is for histories that are worth it. The search of a key
is bounded by ``FEW`` configurations, and then by ``MANY``. Limits: 64 operations of unknown outcome for each key.

Sources: Wing and Gong (1993); Lowe, "Testing for linearizability" (2017); Porcupine searches likewise.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numba import njit

from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.object_operations import FAIL, INFO, Operations
from nemesis.checkers.linearizable.search import Effects

FEW: Final = 2
"""Configurations for each operation in the first attempt, whose memory fits into the processor's cache."""
MANY: Final = 64
MOST: Final = 2**20
"""Configurations of the second attempt at most, unless the first one may have more."""
SPARE: Final = 256
"""Configurations beyond those for each operation."""
WORD: Final = 64
_CHUNKS: Final = 8
"""Pieces of the keys for each processor."""
_WORDS: Final = 5
"""Of a configuration in the memory: state, base, required bits, optional bits, key."""


def ordered_keys(operations: Operations, effects: Effects, initial: int) -> Mask:
    """Return for each operation whether an order of its key's operations was proved to exist."""
    looks = effects.looks
    counts = (operations.outcome != FAIL) & ~(looks & (operations.outcome == INFO))
    permutation = np.argsort(operations.key, kind="stable")
    keys = operations.key[permutation]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)]))
    given = _Given(
        operations.start[permutation],
        operations.finish[permutation],
        counts[permutation],
        (operations.outcome == INFO)[permutation],
        effects.select(permutation),
    )
    count = max(1, min(len(edges) - 1, _CHUNKS * (os.cpu_count() or 1)))
    cuts = np.linspace(0, len(edges) - 1, count + 1).astype(np.int64)
    chunks = [edges[a : b + 1] for a, b in pairwise(cuts)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(partial(_ordered, given, initial), chunks))
    proved = np.repeat(np.concatenate(results), np.diff(edges))
    is_ordered = np.empty(len(keys), dtype=np.bool_)
    is_ordered[permutation] = proved
    return is_ordered


@dataclass(frozen=True, slots=True)
class _Given:
    """The columns of the operations, sorted by key."""

    start: Numbers
    finish: Numbers
    counts: Mask
    is_in_doubt: Mask
    effects: Effects


def _ordered(given: _Given, initial: int, edges: Numbers) -> Mask:
    """Whether each key of a chunk has an order."""
    is_ordered = np.zeros(len(edges) - 1, dtype=np.bool_)
    effects = given.effects
    largest = int(np.diff(edges).max(initial=0))
    few, many = FEW * largest, min(MANY * largest, MOST)
    for each, most in ((FEW, few), (MANY, many)):
        if most < few:
            break
        size = 1 << int(2 * (most + SPARE)).bit_length()
        memory = np.full((size, _WORDS), -1, dtype=np.int64)
        _search_keys(
            edges,
            given.start,
            given.finish,
            given.counts,
            given.is_in_doubt,
            effects.needs,
            effects.is_needy,
            effects.gives,
            initial,
            each,
            most,
            memory,
            is_ordered,
        )
        if is_ordered.all():
            break
    return is_ordered


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _search_keys(
    edges: Numbers,
    start: Numbers,
    finish: Numbers,
    counts: Mask,
    is_in_doubt: Mask,
    needs: Numbers,
    is_needy: Mask,
    gives: Numbers,
    initial: int,
    each: int,
    most: int,
    memory: Numbers,
    is_ordered: Mask,
) -> None:
    """Search the keys that are not known to have an order."""
    for key in range(len(edges) - 1):
        if is_ordered[key]:
            continue
        chosen = np.flatnonzero(counts[edges[key] : edges[key + 1]]) + edges[key]
        wanted = np.sort(needs[chosen][is_needy[chosen] & ~is_in_doubt[chosen]])
        wanted_in_doubt = needs[chosen][is_needy[chosen] & is_in_doubt[chosen]]
        kept = np.ones(len(chosen), dtype=np.bool_)
        for number in range(len(chosen)):
            if is_in_doubt[chosen[number]]:
                value = gives[chosen[number]]
                nearest = np.searchsorted(wanted, value)
                kept[number] = (nearest < len(wanted) and wanted[nearest] == value) or np.any(
                    wanted_in_doubt == value
                )
        chosen = chosen[kept]
        chosen = chosen[np.argsort(start[chosen], kind="mergesort")]
        limit = min(each * len(chosen), most) + SPARE
        is_ordered[key] = _search(
            start[chosen],
            finish[chosen],
            is_in_doubt[chosen],
            needs[chosen],
            is_needy[chosen],
            gives[chosen],
            initial,
            limit,
            key,
            memory,
        )


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _is_new(
    memory: Numbers, key: int, mask: int, state: int, base: int, required: int, optional: int
) -> bool:
    """Put a configuration into the memory; return whether it was not there."""
    mixed = (state * 0x9E3779B1 + base) * 0x85EBCA77 ^ (required * 0x27D4EB2F) ^ optional
    mixed ^= mixed >> 29
    mixed *= 0x165667B1
    slot = (mixed ^ (mixed >> 32)) & mask
    while memory[slot, 4] == key:
        row = memory[slot]
        if row[0] == state and row[1] == base and row[2] == required and row[3] == optional:
            return False
        slot = (slot + 1) & mask
    memory[slot, 0], memory[slot, 1], memory[slot, 2] = state, base, required
    memory[slot, 3], memory[slot, 4] = optional, key
    return True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _search(
    start: Numbers,
    finish: Numbers,
    is_in_doubt: Mask,
    needs: Numbers,
    is_needy: Mask,
    gives: Numbers,
    initial: int,
    limit: int,
    key: int,
    memory: Numbers,
) -> bool:
    """Return whether an order of the operations of a key was reached; they are in the order of their beginnings.

    The list has an entry for each beginning (number of the operation + 1), then for each end; 0 is its head.
    """
    count = len(start)
    following, previous = np.zeros(2 * count + 1, np.int64), np.zeros(2 * count + 1, np.int64)
    bit = np.zeros(count, dtype=np.int64)
    alike = np.full(count, -1, dtype=np.int64)
    required = _numbered(is_in_doubt, needs, is_needy, gives, bit, alike)
    if required < 0:
        return False
    _link(start, finish, is_in_doubt, following, previous)
    mask = 1
    while mask < 2 * limit:
        mask *= 2
    mask = min(mask, len(memory)) - 1
    stack = np.empty((count + 1, _WORDS), dtype=np.int64)
    depth, tried, left = 0, 0, required
    state, base, done, optional = initial, 0, 0, 0
    current = following[0]
    while left > 0:
        if current > count:  # an end that cannot be passed
            looks = True
            while looks and depth > 0:
                depth -= 1
                current, state = stack[depth, 0], stack[depth, 1]
                base, done, optional = stack[depth, 2], stack[depth, 3], stack[depth, 4]
                operation = current - 1
                looks = is_needy[operation] and needs[operation] == gives[operation]
                left += not is_in_doubt[operation]
                _put_back(current, count, is_in_doubt[operation], following, previous)
            if looks:
                return False
            current = following[current]
            continue
        operation = current - 1
        new_base, new_done, new_optional = base, done, optional
        is_possible = not is_needy[operation] or needs[operation] == state
        if is_in_doubt[operation]:
            before = alike[operation]
            is_possible = is_possible and (before < 0 or (optional >> before) & 1 == 1)
            is_possible = is_possible and _is_wanted(
                gives[operation], current, count, following, needs, is_needy
            )
            new_optional |= np.int64(1) << bit[operation]
        else:
            distance = bit[operation] - base
            if distance >= WORD:
                return False
            new_done |= np.int64(1) << distance
            while new_done & 1:
                new_done = (new_done >> 1) & 0x7FFFFFFFFFFFFFFF
                new_base += 1
        if is_possible and _is_new(
            memory, key, mask, gives[operation], new_base, new_done, new_optional
        ):
            tried += 1
            if tried > limit:
                return False
            stack[depth, 0], stack[depth, 1] = current, state
            stack[depth, 2], stack[depth, 3], stack[depth, 4] = base, done, optional
            depth += 1
            _lift(current, count, is_in_doubt[operation], following, previous)
            state, base, done, optional = gives[operation], new_base, new_done, new_optional
            left -= not is_in_doubt[operation]
            current = following[0]
        else:
            current = following[current]
    return True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _is_wanted(
    value: int,
    entry: int,
    count: int,
    following: Numbers,
    needs: Numbers,
    is_needy: Mask,
) -> bool:
    """Whether an operation that may be next, other than the one of an entry, needs a value."""
    other = following[0]
    while 0 < other <= count:
        if other != entry and is_needy[other - 1] and needs[other - 1] == value:
            return True
        other = following[other]
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _numbered(
    is_in_doubt: Mask,
    needs: Numbers,
    is_needy: Mask,
    gives: Numbers,
    bit: Numbers,
    alike: Numbers,
) -> int:
    """Number the operations that ended and those in doubt apart, from 0; return how many have ended.

    ``alike`` gets, for an operation in doubt, the bit of the one before it with the same effect: of those that are
    alike the first goes first. −1: too many are in doubt.
    """
    required, in_doubt = 0, 0
    doubtful = np.empty(WORD, dtype=np.int64)
    for operation in range(len(bit)):
        if not is_in_doubt[operation]:
            bit[operation] = required
            required += 1
            continue
        if in_doubt == WORD:
            return -1
        bit[operation] = in_doubt
        for number in range(in_doubt):
            other = doubtful[number]
            is_same = is_needy[other] == is_needy[operation] and gives[other] == gives[operation]
            if is_same and (not is_needy[other] or needs[other] == needs[operation]):
                alike[operation] = number
        doubtful[in_doubt] = operation
        in_doubt += 1
    return required


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _link(
    start: Numbers, finish: Numbers, is_in_doubt: Mask, following: Numbers, previous: Numbers
) -> None:
    """Link beginnings and ends by time; at equal times beginnings come first, so that the two overlap."""
    count = len(start)
    ends = np.argsort(finish, kind="mergesort")
    last, begun = 0, 0
    for end in ends:
        if is_in_doubt[end]:
            continue
        while begun < count and start[begun] <= finish[end]:
            following[last], previous[begun + 1] = begun + 1, last
            last = begun + 1
            begun += 1
        following[last], previous[count + 1 + end] = count + 1 + end, last
        last = count + 1 + end


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _lift(entry: int, count: int, is_in_doubt: bool, following: Numbers, previous: Numbers) -> None:
    """Take a beginning and its end out of the list."""
    following[previous[entry]] = following[entry]
    previous[following[entry]] = previous[entry]
    if not is_in_doubt:
        entry += count
        following[previous[entry]] = following[entry]
        previous[following[entry]] = previous[entry]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _put_back(
    entry: int, count: int, is_in_doubt: bool, following: Numbers, previous: Numbers
) -> None:
    """Undo ``_lift``."""
    if not is_in_doubt:
        following[previous[entry + count]] = entry + count
        previous[following[entry + count]] = entry + count
    following[previous[entry]] = entry
    previous[following[entry]] = entry

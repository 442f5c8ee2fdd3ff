"""Kernels over graphs as bits: row ``a`` of a graph has the bits of all transactions that ``a`` leads to.

Some levels need two states of each transaction; the second states follow the first ones, from a word boundary on.

* ``SNAPSHOT``: a state says whether the transaction was entered by an rw. From such a state no rw leads on. So closed
  walks of states are the cycles in which no two rw are adjacent.
* ``PARALLEL_SNAPSHOT``: a state says whether an rw was used already. A second one is not offered. So the walks from the
  first state of a transaction to either of its own are the cycles with at most one rw.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nemesis.checkers.cycles.models import SessionOrder
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled

Bits = np.ndarray[Any, np.dtype[np.uint64]]


def empty(rows: int, count: int) -> Bits:
    """Sets of ``count`` transactions, one for each row."""
    return np.zeros((rows, max(1, (count + 63) // 64)), dtype=np.uint64)


def add(bits: Bits, row: Numbers, bit: Numbers) -> None:
    """Put each bit into the set of its row."""
    np.bitwise_or.at(bits, (row, bit >> 6), np.uint64(1) << (bit & 63).astype(np.uint64))


def members(bits: Bits) -> Numbers:
    """The bits of one set."""
    unpacked = np.unpackbits(bits.view(np.uint8), bitorder="little")
    return np.flatnonzero(unpacked)


def session_order(kept: SessionOrder, process: Numbers, began: Numbers, ended: Numbers) -> Bits:
    """The order of each process, or real time; each is transitive as it stands."""
    count = len(process)
    bits = empty(count, count)
    if kept is SessionOrder.NONE:
        return bits
    for txn in range(count):
        is_later = (process == process[txn]) & (began >= ended[txn])
        if kept is SessionOrder.REALTIME:
            is_later |= began > ended[txn]
        is_later[txn] = False
        after = np.flatnonzero(is_later)
        add(bits, np.full(len(after), txn), after)
    return bits


def closed(graph: Bits) -> Bits:
    """Return which nodes each node reaches by at least one edge; node ``n`` has row and bit ``n``."""
    reach = graph.copy()
    _close(reach, len(reach), 0, 0)
    return reach


def closed_states(graph: Bits, count: int) -> Bits:
    """As ``closed``, for two states of each transaction."""
    reach = graph.copy()
    _close(reach, count, count, 64 * (graph.shape[1] // 2))
    return reach


def snapshot_states(plain: Bits, rw: Bits) -> Bits:
    """The graph of states of ``SNAPSHOT``."""
    nothing = np.zeros_like(plain)
    first = np.concatenate([plain, rw], axis=1)
    return np.concatenate([first, np.concatenate([plain, nothing], axis=1)])


def parallel_states(plain: Bits, rw: Bits) -> Bits:
    """The graph of states of ``PARALLEL_SNAPSHOT``."""
    nothing = np.zeros_like(plain)
    first = np.concatenate([plain, rw], axis=1)
    return np.concatenate([first, np.concatenate([nothing, plain], axis=1)])


def reaches_itself(reach: Bits) -> bool:
    """Whether some row has its own bit."""
    rows = np.arange(len(reach))
    return bool(has(reach, rows, rows).any())


def has(bits: Bits, row: Numbers, bit: Numbers) -> Mask:
    """Whether each bit is in the set of its row."""
    word = bits[row, bit >> 6] >> (bit & 63).astype(np.uint64)
    present: Mask = (word & np.uint64(1)).astype(np.bool_)
    return present


@compiled
def _close(reach: Bits, count: int, second: int, second_bit: int) -> None:
    """Warshall's algorithm; rows from ``second`` on, if not 0, have bits from ``second_bit`` on."""
    rows = reach.shape[0]
    words = reach.shape[1]
    for k in range(rows):
        bit = k if k < count else second_bit + k - second
        word, mask = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
        for row in range(rows):
            if row != k and reach[row, word] & mask:
                for i in range(words):
                    reach[row, i] |= reach[k, i]


@compiled
def force(
    first: Numbers,
    second: Numbers,
    decided: np.ndarray[Any, np.dtype[np.int8]],
    writer: Numbers,
    readers: Bits,
    blocked_ww: Bits,
    blocked_rw: Bits,
) -> tuple[int, int]:
    """Decide the open choices of which one side closes a forbidden cycle; return how many, and a choice of which both
    do, −1 without one. ``decided`` becomes 1 where the first writer comes first, 2 where the second does.
    """
    count = 0
    for choice in range(len(first)):
        if decided[choice]:
            continue
        bad = 0
        for side in range(2):
            before = first[choice] if side == 0 else second[choice]
            after = second[choice] if side == 0 else first[choice]
            a, b = writer[before], writer[after]
            is_bad = (blocked_ww[b, a >> 6] >> np.uint64(a & 63)) & np.uint64(1) != 0
            if not is_bad:
                for i in range(readers.shape[1]):
                    common = readers[before, i] & blocked_rw[b, i]
                    if i == b >> 6:
                        common &= ~(np.uint64(1) << np.uint64(b & 63))
                    if common:
                        is_bad = True
                        break
            if is_bad:
                bad |= 1 << side
        if bad == 3:
            return count, choice
        if bad:
            decided[choice] = 2 if bad == 1 else 1
            count += 1
    return count, -1


@compiled
def draw(
    first: Numbers,
    second: Numbers,
    decided: np.ndarray[Any, np.dtype[np.int8]],
    writer: Numbers,
    readers: Bits,
    ww: Bits,
    rw: Bits,
) -> None:
    """Add the edges of all decided choices to ``ww`` and ``rw``."""
    for choice in range(len(first)):
        if not decided[choice]:
            continue
        before, after = first[choice], second[choice]
        if decided[choice] == 2:
            before, after = after, before
        a, b = writer[before], writer[after]
        mask = np.uint64(1) << np.uint64(b & 63)
        ww[a, b >> 6] |= mask
        for i in range(readers.shape[1]):
            bits = readers[before, i]
            bit = 64 * i
            while bits:
                if bits & np.uint64(1) and bit != b:
                    rw[bit, b >> 6] |= mask
                bits >>= np.uint64(1)
                bit += 1


@compiled
def path(
    graph: Bits, starts: Numbers, goals: Numbers, count: int, second: int, second_bit: int
) -> Numbers:
    """Return the nodes of a shortest walk from one of ``starts`` to one of ``goals``, both included; empty without one.

    Rows are as in ``_close``.
    """
    rows, words = graph.shape
    came_from = np.full(rows, -2, np.int64)
    is_goal = np.zeros(rows, np.bool_)
    for goal in goals:
        is_goal[goal] = True
    unseen = np.zeros(words, np.uint64)
    for row in range(rows):
        bit = row if row < count else second_bit + row - second
        unseen[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    queue = np.empty(rows, np.int64)
    tail = 0
    for start in starts:
        queue[tail] = start
        tail += 1
        came_from[start] = -1
        bit = start if start < count else second_bit + start - second
        unseen[bit >> 6] &= ~(np.uint64(1) << np.uint64(bit & 63))
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        if is_goal[node]:
            length = 1
            back = node
            while came_from[back] >= 0:
                back = came_from[back]
                length += 1
            walk = np.empty(length, np.int64)
            for i in range(length - 1, -1, -1):
                walk[i] = node
                node = came_from[node]
            return walk
        for i in range(words):
            new = graph[node, i] & unseen[i]
            unseen[i] &= ~new
            bit = 64 * i
            while new:
                if new & np.uint64(1):
                    other = bit if second == 0 or bit < second_bit else bit - second_bit + second
                    came_from[other] = node
                    queue[tail] = other
                    tail += 1
                new >>= np.uint64(1)
                bit += 1
    return np.empty(0, np.int64)

"""Where cycles can be at all: most of a history is cleared without a search.

Transactions are numbered in the candidate order. An edge against it (*backward*) spans a stretch of transactions, and
every cycle lies inside one connected run of such stretches, because each step of the cycle upwards is made up for by
backward edges. Edges of real time are never backward. So without backward edges there is no cycle of any kind.

A run is cleared in linear time: transactions are taken away once all on which they depend have been, and each is told
the *earliest moment* at which it can have taken effect: when it began, or the earliest moment of one of these, if that
is later. What cannot be taken away is on a cycle or behind one; who ended before its earliest moment is on a cycle
with real time. If there is neither, the earliest moments are an order that explains everything.

Source: interval orders; the same points are known from linearizability with known dependencies.
"""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.paths import earliest_times
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers


def suspects(source: Numbers, target: Numbers, began: Numbers, ended: Numbers) -> Mask:
    """Return for each transaction whether it is in a run that holds a cycle of these edges and real time."""
    count = len(began)
    run, size = _runs(source, target, count)
    if not size:
        return np.zeros(count, dtype=np.bool_)
    inside = (run[source] >= 0) & (run[source] == run[target])
    earliest, taken = earliest_times(count, source[inside], target[inside], began)
    at_fault = (run >= 0) & (~taken | (earliest > ended))
    guilty = np.zeros(size + 1, dtype=np.bool_)
    guilty[run[at_fault]] = True
    guilty[size] = False
    return guilty[run]


def _runs(source: Numbers, target: Numbers, count: int) -> tuple[Numbers, int]:
    """For each transaction the run that it is in, −1 if in none; and how many there are."""
    backward = source > target
    if not backward.any():
        return np.full(count, -1, dtype=np.int64), 0
    change = np.bincount(target[backward], minlength=count)
    change -= np.bincount(source[backward], minlength=count)
    joined_to_next = np.cumsum(change) > 0
    joined_to_last = np.concatenate(([False], joined_to_next[:-1]))
    begins = joined_to_next & ~joined_to_last
    run = np.where(joined_to_next | joined_to_last, np.cumsum(begins) - 1, -1)
    return run, int(begins.sum())

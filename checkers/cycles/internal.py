"""Contradictions inside one transaction: a read that does not agree with what the transaction itself did before it.

A list that was read is, when it is read again, that list and the transaction's own appends since; without an earlier
read it ends with its own appends. A register has the value that the transaction wrote or read last. No list and no
register has what the transaction appends or writes only after the read.

Source: the axiom INT of Cerone, Bernardi and Gotsman, "A Framework for Transactional Consistency Models" (2015).
"""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.transaction_rows import Elements
from nemesis.checkers.cycles.transactions import READ, UNKNOWN, Bytes, MicroOperations
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled


def contradicting_lists(micro: MicroOperations) -> Numbers:
    """Return the reads of lists that contradict their own transaction."""
    return _lists(micro.code, micro.element_start, micro.count, micro.flat, micro.previous)


def contradicting_registers(micro: MicroOperations) -> Numbers:
    """Return the reads of registers that contradict their own transaction."""
    again = (micro.code == READ) & (micro.count > UNKNOWN) & (micro.previous >= 0)
    again &= micro.count[micro.previous] > UNKNOWN
    reads = np.flatnonzero(again)
    before = micro.previous[reads]
    none = micro.count[reads] == 0
    value = np.where(none, 0, micro.flat[np.where(none, 0, micro.element_start[reads])])
    none_before = micro.count[before] == 0
    value_before = np.where(
        none_before, 0, micro.flat[np.where(none_before, 0, micro.element_start[before])]
    )
    contradicting: Numbers = reads[(none != none_before) | (value != value_before)]
    return contradicting


def lists_of_the_future(micro: MicroOperations, writes: Writes, reader: Numbers) -> Numbers:
    """Return the reads of lists that have an element which their own transaction appends only later.

    ``reader``: for each write the first read that holds it. The read in question holds it, too, so only writes matter
    whose first reader is not a later transaction: few.
    """
    early = np.flatnonzero((reader >= 0) & (micro.txn[reader] <= writes.txn))
    return _future_lists(
        micro.code,
        micro.element_start,
        micro.count,
        micro.flat,
        micro.previous,
        writes.micro[early],
    )


@compiled
def _future_lists(
    code: Bytes,
    element_start: Numbers,
    count: Numbers,
    flat: Elements,
    previous: Numbers,
    chosen: Numbers,
) -> Numbers:
    has_future = np.zeros(len(code), np.bool_)
    for write in chosen:
        element = flat[element_start[write]]
        read = previous[write]
        while read >= 0:
            if code[read] == READ:
                for n in range(count[read]):
                    if flat[element_start[read] + n] == element:
                        has_future[read] = True
                        break
            read = previous[read]
    return np.flatnonzero(has_future)


@compiled
def _lists(
    code: Bytes, element_start: Numbers, count: Numbers, flat: Elements, previous: Numbers
) -> Numbers:
    contradicts = np.zeros(len(code), np.bool_)
    for read in range(len(code)):
        if code[read] != READ or count[read] <= UNKNOWN:
            continue
        i = previous[read]
        rest = count[read]
        while i >= 0 and code[i] != READ:
            rest -= 1
            if rest < 0 or flat[element_start[read] + rest] != flat[element_start[i]]:
                contradicts[read] = True
                break
            i = previous[i]
        if contradicts[read] or i < 0 or count[i] <= UNKNOWN:
            continue
        if rest != count[i]:
            contradicts[read] = True
            continue
        for n in range(rest):
            if flat[element_start[read] + n] != flat[element_start[i] + n]:
                contradicts[read] = True
                break
    return np.flatnonzero(contradicts)

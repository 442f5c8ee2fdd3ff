"""A serial order that explains everything, built in turn: a proof that the history is serializable.

Transactions are put one after the other. The next one is the first in the candidate order that may come now:

* what its process, or real time, has before it has been put;
* all that it read of others is the present version of its key;
* of each key that it writes, no other transaction still has to read the present version.

The last condition is necessary in every serial order, as a version never comes back. So is that what it writes may
still be read: no reader of it also read a version that has been replaced.

If all are put, their order is serial and gives each read what it returned. If it also keeps the order of sessions
and the known order of writers, which are looked at afterwards, the history keeps every model of the lattice with that
order of sessions or a weaker one.

Where no transaction may come now, the last one that wrote is taken back, and a later one put instead: a wrong choice
shows soon, because real time leaves few transactions to choose from. Who only read is not to blame, as the state
before and after is the same. Of the transactions in waiting the first ``WINDOW`` are looked at, and each one about
``LOOKS`` times in all. If the pass gives up, nothing follows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nemesis.checkers.cycles.models import SessionOrder
from nemesis.checkers.cycles.orders.problem import Problem
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET
from nemesis.checkers.framework.compiled import compiled

WINDOW: Final = 512
LOOKS: Final = 500
"""How often a transaction is looked at, on average, before the pass gives up."""


def has_serial_order(problem: Problem) -> bool:
    """Return whether the pass puts all transactions, in an order that sessions keep."""
    position = _positions(problem)
    if not len(position):
        return not len(problem)
    if (position[problem.before] > position[problem.after]).any():
        return False
    everyone = np.zeros(len(problem), dtype=np.int64)
    began, ended = problem.began, problem.ended
    if problem.session_order is SessionOrder.NONE:
        return True
    if not _keeps(position, problem.process, began, ended, _by(problem.process, began, ended)):
        return False
    if problem.session_order is SessionOrder.PROCESS:
        return True
    # Only what had ended before, and not at, its beginning: one less, for all but an unknown beginning.
    began = np.maximum(began, UNSET + 1) - 1
    return bool(_keeps(position, everyone, began, ended, _by(everyone, began, ended)))


def _by(group: Numbers, began: Numbers, ended: Numbers) -> tuple[Numbers, Numbers]:
    return np.lexsort((began, group)), np.lexsort((ended, group))


def _positions(problem: Problem) -> Numbers:
    """The position of each transaction in the order, none if the pass gets stuck."""
    count = len(problem)
    read_first = np.searchsorted(problem.reader, np.arange(count + 1))
    write_first = np.searchsorted(problem.writer, np.arange(count + 1))
    version = _versions(problem)
    by_version = np.argsort(version, kind="stable")
    is_timed = problem.session_order is SessionOrder.REALTIME
    return _put_all(
        read_first,
        problem.read_key,
        version,
        write_first,
        problem.write_key,
        by_version,
        np.searchsorted(version[by_version], np.arange(len(problem.writer) + problem.keys + 1)),
        problem.reader,
        problem.keys,
        _successors(problem),
        problem.began,
        problem.ended if is_timed else np.zeros(0, dtype=np.int64),
    )


def _versions(problem: Problem) -> Numbers:
    """For each read the entry of ``problem.writer`` that it read; of nil, a number after those, by key.

    A read of a version that the problem does not contain has a number that no entry has.
    """
    entry_of = problem.writer * problem.keys + problem.write_key
    by = np.argsort(entry_of, kind="stable")
    wanted = problem.read_from * problem.keys + problem.read_key
    if not len(by):
        return len(problem.writer) + problem.read_key
    position = np.minimum(np.searchsorted(entry_of[by], wanted), len(by) - 1)
    entry = by[position]
    known = entry_of[entry] == wanted
    missing = np.where(problem.read_from < 0, len(problem.writer) + problem.read_key, -1)
    return np.where(known, entry, missing)


def _successors(problem: Problem) -> Numbers:
    """For each transaction the one of its process that has to be put before, −1 without one."""
    before = np.full(len(problem), -1, dtype=np.int64)
    if problem.session_order is SessionOrder.NONE:
        return before
    by = np.lexsort((problem.began, problem.process))
    earlier, later = by[:-1], by[1:]
    follows = problem.process[earlier] == problem.process[later]
    follows &= problem.ended[earlier] <= problem.began[later]
    before[later[follows]] = earlier[follows]
    return before


@compiled
def _reads_present(
    txn: int, read_first: Numbers, read_key: Numbers, version: Numbers, present: Numbers
) -> bool:
    """Whether all that a transaction read is the present version of its key."""
    for read in range(read_first[txn], read_first[txn + 1]):  # noqa: SIM110 (compiled)
        if present[read_key[read]] != version[read]:
            return False
    return True


@compiled
def _may_replace(
    txn: int,
    entry: int,
    replaced: int,
    read_first: Numbers,
    version: Numbers,
    reads_by_version: Numbers,
    version_first: Numbers,
    reader: Numbers,
    waiting: Numbers,
    is_gone: Mask,
) -> bool:
    """Whether no other transaction waits for the replaced version, and all readers of the new one may still come."""
    left = waiting[replaced]
    for read in range(read_first[txn], read_first[txn + 1]):
        left -= version[read] == replaced
    if left:
        return False
    for i in range(version_first[entry], version_first[entry + 1]):
        other = reader[reads_by_version[i]]
        for read in range(read_first[other], read_first[other + 1]):
            if is_gone[version[read]]:
                return False
    return True


@compiled
def _put_all(  # noqa: C901 (one state, which is advanced and taken back)
    read_first: Numbers,
    read_key: Numbers,
    version: Numbers,
    write_first: Numbers,
    write_key: Numbers,
    reads_by_version: Numbers,
    version_first: Numbers,
    reader: Numbers,
    keys: int,
    before: Numbers,
    began: Numbers,
    ends: Numbers,
) -> Numbers:
    nothing = np.empty(0, np.int64)
    count, entries = len(read_first) - 1, len(write_key)
    if (version < 0).any():
        return nothing
    present = entries + np.arange(keys)
    waiting = np.zeros(entries + keys, np.int64)
    for number in version:
        waiting[number] += 1
    is_gone = np.zeros(entries + keys, np.bool_)
    replaced = np.empty(entries, np.int64)
    position = np.full(count, -1, np.int64)
    by_end = np.argsort(ends)
    # A list of those that are not put yet: the one after each, and the first. Taken out in turn, they go back in turn.
    following = np.arange(1, count + 1)
    head = 0
    # Of each step: what was put, what stands before it in the list, and how far the ends had been put.
    put, left_of, ends_put = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    number, ended = 0, 0
    last, txn = -1, 0
    looked, budget = 0, LOOKS * (count + 1000)
    while number < count:
        while ended < len(ends) and position[by_end[ended]] >= 0:
            ended += 1
        chosen = -1
        for _ in range(WINDOW):
            if txn == count:
                break
            looked += 1
            may = before[txn] < 0 or position[before[txn]] >= 0
            if len(ends) and by_end[ended] != txn:
                may = may and began[txn] <= ends[by_end[ended]]
            may = may and _reads_present(txn, read_first, read_key, version, present)
            entry = write_first[txn]
            while may and entry < write_first[txn + 1]:
                may = _may_replace(
                    txn,
                    entry,
                    present[write_key[entry]],
                    read_first,
                    version,
                    reads_by_version,
                    version_first,
                    reader,
                    waiting,
                    is_gone,
                )
                entry += 1
            if may:
                chosen = txn
                break
            last = txn
            txn = following[txn]
        if chosen >= 0:
            put[number], left_of[number], ends_put[number] = chosen, last, ended
            position[chosen] = number
            number += 1
            if last < 0:
                head = following[chosen]
            else:
                following[last] = following[chosen]
            for read in range(read_first[chosen], read_first[chosen + 1]):
                waiting[version[read]] -= 1
            for entry in range(write_first[chosen], write_first[chosen + 1]):
                replaced[entry] = present[write_key[entry]]
                is_gone[replaced[entry]] = True
                present[write_key[entry]] = entry
            last, txn = -1, head
            continue
        is_alternative = False
        while not is_alternative:
            if not number or looked > budget:
                return nothing
            number -= 1
            chosen, last, ended = put[number], left_of[number], ends_put[number]
            position[chosen] = -1
            if last < 0:
                head = chosen
            else:
                following[last] = chosen
            for read in range(read_first[chosen], read_first[chosen + 1]):
                waiting[version[read]] += 1
            for entry in range(write_first[chosen], write_first[chosen + 1]):
                is_gone[replaced[entry]] = False
                present[write_key[entry]] = replaced[entry]
            is_alternative = write_first[chosen] < write_first[chosen + 1]
        last, txn = chosen, following[chosen]
    return position


@compiled
def _keeps(
    position: Numbers,
    group: Numbers,
    began: Numbers,
    ended: Numbers,
    by: tuple[Numbers, Numbers],
) -> bool:
    """Whether each transaction comes after those of its group that had ended, at the latest, when it began."""
    by_begin, by_end = by
    following = 0
    present, latest = np.int64(-1), np.int64(-1)
    for txn in by_begin:
        if group[txn] != present:
            present, latest = group[txn], np.int64(-1)
            while group[by_end[following]] != present:
                following += 1
        while (
            following < len(by_end)
            and group[by_end[following]] == present
            and ended[by_end[following]] <= began[txn]
        ):
            latest = max(latest, position[by_end[following]])
            following += 1
        if latest > position[txn]:
            return False
    return True

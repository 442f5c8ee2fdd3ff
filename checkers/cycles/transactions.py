"""Transactions and their micro-operations, as columns: who, when, how it ended, what was read and written.

A transaction is what one ``op`` has in the history: an invocation, and at most one completion. Transactions are
numbered in the *candidate order*: as they ended, and those whose end is unknown as they began. A system that works
commits in nearly this order, so a dependency against it is rare, and no edge of real time is ever against it.

What a transaction read is known only if it ended ``ok``. Its writes are known from the completion, or from the
invocation where the completion does not tell them.

Limits: of an ``op`` that has several invocations or completions the first of each count; ``Transactions.problems``
says so, and also which lists are no micro-operations (they are taken to have none).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.checkers.cycles.transaction_rows import INFO, INVOKE, OK, Elements, Rows
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET
from nemesis.checkers.framework.compiled import compiled
from nemesis.checkers.framework.nouns import noun_for

READ, WRITE = 0, 1
UNKNOWN: Final = -1
"""The count of a read whose result is unknown."""
NEVER: Final = np.iinfo(np.int64).max
"""When a transaction ended of which no end is known."""

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Bytes = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, slots=True)
class Transactions:
    """One entry per transaction, in the candidate order."""

    op: Numbers
    outcome: Bytes
    """``OK``, ``FAIL`` (certainly not committed) or ``INFO`` (unknown)."""
    process: Numbers
    processes: list[str]
    began: Numbers
    """In ns; ``UNSET`` if its invocation is missing."""
    ended: Numbers
    """In ns; ``NEVER`` unless it ended ``ok``."""
    row: Numbers
    """The row that reports it: its completion, or else its invocation."""
    problems: tuple[str, ...]
    """What is wrong with the history, a sentence each."""

    def __len__(self) -> int:
        return len(self.op)

    def name(self, txn: int) -> str:
        """Return how a transaction is called in findings."""
        return f"T{self.op[txn]}"


@dataclass(frozen=True, slots=True)
class MicroOperations:
    """One entry per micro-operation, transaction by transaction, in the order in which each made them."""

    txn: Numbers
    code: Bytes
    """``READ`` or ``WRITE``."""
    key: Numbers
    """A position in ``keys``."""
    keys: Numbers
    element_start: Numbers
    """Where in ``flat`` its elements begin."""
    count: Numbers
    """How many elements; ``UNKNOWN`` of a read whose result is unknown."""
    flat: Elements
    previous: Numbers
    """The micro-operation of the same transaction before it on the same key, −1 if it is the first."""
    is_last_write: Mask
    """Whether it is a write after which the transaction does not write to the key."""

    def __len__(self) -> int:
        return len(self.txn)

    def elements(self, number: int) -> list[int]:
        """Return what was read or written."""
        start = int(self.element_start[number])
        return list(self.flat[start : start + max(0, int(self.count[number]))].tolist())

    def key_name(self, number: int) -> str:
        return f"key {self.keys[self.key[number]]}"


def transactions(rows: Rows) -> tuple[Transactions, MicroOperations]:
    """Return what the rows say, in the candidate order."""
    problems = []
    placed = rows.op != UNSET
    if not placed.all():
        problems.append(
            _said(int((~placed).sum()), "events of transactions", "has no op", "have no op")
        )
    op, count = dense(rows.op)
    began, ended, surplus = _paired(op, rows.kind, placed, count)
    if surplus:
        second = "a second invocation or completion of"
        problems.append(_said(surplus, "events", f"is {second} its op", f"are {second} their op"))
    chosen = _in_candidate_order(began, ended, rows.kind)
    began, ended = began[chosen], ended[chosen]
    orphans = int((began < 0).sum())
    if orphans:
        without = "a completion without an invocation"
        problems.append(_said(orphans, "transactions", f"has {without}", f"have {without}"))
    outcome = np.where(ended >= 0, rows.kind[ended], INFO).astype(np.int8)
    telling = np.where(ended >= 0, ended, began)
    source = np.where((ended >= 0) & (rows.size[ended] > 0), ended, np.where(began >= 0, began, 0))
    micro, malformed = _micro_operations(rows, source, outcome)
    if malformed:
        without = "no readable list of micro-operations"
        problems.append(_said(malformed, "transactions", f"has {without}", f"have {without}"))
    txns = Transactions(
        op=rows.op[telling],
        outcome=outcome,
        process=rows.process[telling],
        processes=rows.processes,
        began=np.where(began >= 0, rows.time[began], UNSET),
        ended=np.where(outcome == OK, rows.time[ended], NEVER),
        row=rows.row[telling],
        problems=tuple(problems),
    )
    return txns, micro


def _said(count: int, nouns: str, singular: str, plural: str) -> str:
    """A sentence about a count, with the predicate for one or for several."""
    return f"{count} {noun_for(count, nouns)} {singular if count == 1 else plural}."


def dense(numbers: Numbers) -> tuple[Numbers, int]:
    """Return small numbers from 0, equal for equal ones, and how many there may be of them."""
    if not len(numbers):
        return numbers, 0
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 2 * len(numbers) + 1024:
        return numbers - low, high - low + 1
    coded = pc.dictionary_encode(pa.array(numbers))
    return np.asarray(coded.indices.to_numpy(), dtype=np.int64), len(coded.dictionary)


def _in_candidate_order(began: Numbers, ended: Numbers, kind: Numbers) -> Numbers:
    """The ops that occur, ordered by the row of their end, or of their beginning if their end is unknown."""
    known = (ended >= 0) & (kind[ended] != INFO)
    end_row = np.where(known, ended, np.where(began >= 0, began, ended))
    at_row = np.full(len(kind), -1, dtype=np.int64)
    occurs = np.flatnonzero(end_row >= 0)
    at_row[end_row[occurs]] = occurs
    return at_row[at_row >= 0]


def _micro_operations(rows: Rows, source: Numbers, outcome: Bytes) -> tuple[MicroOperations, int]:
    """The micro-operations that the rows ``source`` tell, and how many rows tell none that can be read."""
    ends = np.cumsum(rows.size)
    stop = ends[source]
    start = stop - rows.size[source]
    counts = _counted(rows.flat, start, stop)
    malformed = int((counts < 0).sum())
    counts = np.maximum(counts, 0)
    txn, code, key, element_start, count = _parsed(rows.flat, start, counts, outcome == OK)
    firsts = np.cumsum(counts) - counts
    key_codes, distinct = dense(key)
    keys = np.zeros(distinct, dtype=np.int64)
    keys[key_codes] = key
    previous, is_last_write = _linked(firsts, counts, code, key_codes)
    micro = MicroOperations(
        txn, code, key_codes, keys, element_start, count, rows.flat, previous, is_last_write
    )
    return micro, malformed


@compiled
def _paired(op: Numbers, kind: Numbers, placed: Mask, count: int) -> tuple[Numbers, Numbers, int]:
    """The rows of each op's first invocation and first completion, −1 without one; how many more there are."""
    began = np.full(count, -1, np.int64)
    ended = np.full(count, -1, np.int64)
    surplus = 0
    for row in range(len(op)):
        if not placed[row]:
            continue
        where = began if kind[row] == INVOKE else ended
        if where[op[row]] < 0:
            where[op[row]] = row
        else:
            surplus += 1
    return began, ended, surplus


@compiled
def _counted(flat: Elements, start: Numbers, stop: Numbers) -> Numbers:
    """How many micro-operations each list has, −1 if it does not hold micro-operations."""
    counts = np.zeros(len(start), np.int64)
    for txn in range(len(start)):
        i = start[txn]
        while i < stop[txn]:
            if i + 3 > stop[txn] or flat[i] < READ or flat[i] > WRITE or flat[i + 2] < UNKNOWN:
                break
            if flat[i] == WRITE and flat[i + 2] != 1:
                break
            i += 3 + max(flat[i + 2], 0)
            counts[txn] += 1
        if i != stop[txn]:
            counts[txn] = -1
    return counts


@compiled
def _parsed(
    flat: Elements, start: Numbers, counts: Numbers, is_ok: Mask
) -> tuple[Numbers, Bytes, Numbers, Numbers, Numbers]:
    """For each micro-operation: transaction, code, key, where its elements begin, and how many are known."""
    total = counts.sum()
    txn = np.empty(total, np.int64)
    code = np.empty(total, np.int8)
    key = np.empty(total, np.int64)
    element_start = np.empty(total, np.int64)
    count = np.empty(total, np.int64)
    n = 0
    for t in range(len(start)):
        i = start[t]
        for _ in range(counts[t]):
            txn[n], code[n], key[n], element_start[n], count[n] = (
                t,
                flat[i],
                flat[i + 1],
                i + 3,
                flat[i + 2],
            )
            i += 3 + max(flat[i + 2], 0)
            if code[n] == READ and not is_ok[t]:
                count[n] = UNKNOWN
            n += 1
    return txn, code, key, element_start, count


@compiled
def _linked(firsts: Numbers, counts: Numbers, code: Bytes, key: Numbers) -> tuple[Numbers, Mask]:
    """For each micro-operation the one before it on its key, and whether it is the last write to the key."""
    previous = np.full(len(code), -1, np.int64)
    is_last_write = code == WRITE
    for t in range(len(firsts)):
        for j in range(firsts[t], firsts[t] + counts[t]):
            for i in range(j - 1, firsts[t] - 1, -1):
                if key[i] == key[j]:
                    previous[j] = i
                    break
            if code[j] == WRITE:
                i = previous[j]
                while i >= 0 and code[i] != WRITE:
                    i = previous[i]
                if i >= 0:
                    is_last_write[i] = False
    return previous, is_last_write

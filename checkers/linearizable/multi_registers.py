"""linearizable-multi-register: transactions of reads and writes of several registers happen at one moment each.

Every transaction that succeeded had its effect at one moment between its invocation and its completion. There it reads
what was written last, its own writes included. One of unknown outcome had its effect once after its invocation, or
never. A read that returned nil says nothing, as in Knossos' ``multi-register``. If no transaction read a value, the
property is ``unknown``. Values may be written several times.
Smallest break: a transaction writes 1 to keys 5 and 6; a later one reads 1 of key 5 and 0 of key 6.

The initial value is ``nil``, unless another is stated or concluded (``nemesis.checkers.initial_values``). Registers
that no transaction connects are judged apart. Decided by ``depth_search``, which may give up: ``unknown``.

Two things keep the search small. Values of a register that no transaction read are one value. Transactions of unknown
outcome are left out if nothing that they wrote was read: in an order with one of them, writes hide it from all reads.

Limits: all transactions fit into memory. One finding for each group of connected registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.framework.asked import Asked
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.initial_values import NIL, Changes, Observed, Suggestion, suggested
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.depth_search import LIMIT, Step, search_states
from nemesis.checkers.linearizable.elements import Listed
from nemesis.checkers.linearizable.joining import COLUMNS
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import (
    INFO,
    OK,
    Operations,
    in_history_order,
)
from nemesis.checkers.linearizable.search import GaveUp
from nemesis.history.sources import EventSource

MICRO_OPERATIONS: Final = "micro_operations"
READ, WRITE = range(2)
_UNREAD: Final = object()
"""A value that no transaction read."""


class Micro(NamedTuple):
    f: int
    key: int
    value: int


Txn = tuple[Micro, ...]


class LinearizableMultiRegister(ObjectCheck):
    fs = ("txn",)
    lists = fs
    list_column = MICRO_OPERATIONS
    columns = (*COLUMNS, MICRO_OPERATIONS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LINEARIZABLE_MULTI_REGISTER,)

    def __init__(self, limit: int = LIMIT, initial: int | None = NIL) -> None:
        """``limit``: states that a search may try beyond 20 for each operation. ``initial``: the initial value;
        None if it is not stated.
        """
        self.limit = limit
        self.initial = initial

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(initial=asked.initial)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        operations = in_history_order(operations)
        txns = _transactions(operations, lists)
        findings = []
        initial = NIL if self.initial is None else self.initial
        if self.initial is None and (suggestion := _suggested(operations, txns)) is not None:
            initial = suggestion.value
            findings.append(self._unstated(operations, txns, suggestion))
        for group in _groups(txns):
            result = self._group(operations, txns, group, initial)
            findings += [] if result is None else [result]
        reading = [txn for txn in txns if any(micro.f == READ for micro in txn)]
        return conclude(
            LINEARIZABLE_MULTI_REGISTER,
            checked=len(reading),
            findings=findings,
        )

    def _unstated(self, operations: Operations, txns: list[Txn], suggestion: Suggestion) -> Finding:
        """The finding that the initial value was concluded and not stated."""
        position, _ = list(_reads_of_others(txns))[suggestion.position]
        shown = phrases.rows(operations, position)
        return finding(
            self.name, "the registers", suggestion.sentence, *shown, verdict=Verdict.UNKNOWN
        )

    def _group(
        self, operations: Operations, txns: list[Txn], group: _Group, initial: int
    ) -> Finding | None:
        """Return the finding about registers that transactions connect, if they have no order."""
        kept = _kept(operations, txns, group)
        of_group = operations.select(np.array(kept, dtype=np.int64))
        effects = [txns[position] for position in kept]
        is_look = np.array(
            [all(micro.f == READ for micro in txn) for txn in effects], dtype=np.bool_
        )
        start = (initial,) * len(group.keys)
        result = search_states(
            of_group,
            effects,
            is_look,
            start,
            _coarse(group, _read(operations, txns)),
            self.limit,
            _exact(group),
        )
        if result is None:
            return None
        if isinstance(result, GaveUp):
            return phrases.gave_up(self.name, of_group, result, self.limit)
        return phrases.misfit(
            self.name, of_group, effects, result, group.state_name, _transaction_name
        )


@dataclass(frozen=True, slots=True)
class _Group:
    """Registers that transactions connect."""

    keys: dict[int, int]
    """The position of each in a state."""
    txns: list[int]

    def state_name(self, state: Sequence[Any]) -> str:
        entries = (
            f"{key}: {phrases.value_name(state[position])}" for key, position in self.keys.items()
        )
        return f"{{{', '.join(entries)}}}"


def _transactions(operations: Operations, lists: Listed) -> list[Txn]:
    """What each transaction wrote and, if it succeeded, read."""
    cuts = np.flatnonzero(np.diff(lists.row)) + 1
    edges = [0, *cuts.tolist(), len(lists.row)]
    by_row = {
        int(lists.row[start]): tuple(_micros(lists.value[start:end].tolist()))
        for start, end in pairwise(edges)
        if start < end
    }
    columns = (operations.completed, operations.invoked, operations.outcome)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        tuple(
            micro
            for micro in by_row.get(completed) or by_row.get(invoked, ())
            if micro.f == WRITE or outcome == OK
        )
        for completed, invoked, outcome in rows
    ]


def _micros(flat: list[int]) -> Iterator[Micro]:
    """The writes and the reads that returned a value; each is code, key, count and elements."""
    position = 0
    while position + 3 <= len(flat):
        code, key, count = flat[position : position + 3]
        position += 3 + max(count, 0)
        if count > 0:
            yield Micro(code, key, flat[position - 1])


def _suggested(operations: Operations, txns: list[Txn]) -> Suggestion | None:
    """The initial value that reads show."""
    keys = {key: number for number, key in enumerate(sorted({m.key for t in txns for m in t}))}

    def columns(micros: Iterable[tuple[int, Micro]]) -> tuple[np.ndarray[Any, Any], ...]:
        rows = [(keys[micro.key], micro.value, owner) for owner, micro in micros]
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    key, value, owner = columns(_reads_of_others(txns))
    observed = Observed(key, value, operations.finish[owner], owner)
    writes = ((owner, m) for owner, txn in enumerate(txns) for m in txn if m.f == WRITE)
    key, value, owner = columns(writes)
    return suggested(observed, Changes(key, value, operations.start[owner], owner))


def _reads_of_others(txns: list[Txn]) -> Iterator[tuple[int, Micro]]:
    """Yield each transaction with its reads of keys that it had not written before."""
    for owner, txn in enumerate(txns):
        written: set[int] = set()
        for micro in txn:
            if micro.f == WRITE:
                written.add(micro.key)
            elif micro.key not in written:
                yield owner, micro


def _groups(txns: list[Txn]) -> Iterator[_Group]:
    """Yield the registers that transactions connect, with these transactions."""
    parent: dict[int, int] = {}

    def root(key: int) -> int:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for txn in txns:
        for micro in txn:
            parent.setdefault(micro.key, micro.key)
            parent[root(micro.key)] = root(txn[0].key)
    members: dict[int, list[int]] = {}
    for number, txn in enumerate(txns):
        if txn:
            members.setdefault(root(txn[0].key), []).append(number)
    for numbers in members.values():
        keys = sorted({micro.key for number in numbers for micro in txns[number]})
        yield _Group({key: position for position, key in enumerate(keys)}, numbers)


def _read(operations: Operations, txns: list[Txn]) -> set[tuple[int, int]]:
    """The keys and values that transactions read."""
    outcomes = operations.outcome.tolist()
    return {
        (micro.key, micro.value)
        for txn, outcome in zip(txns, outcomes, strict=True)
        if outcome == OK
        for micro in txn
        if micro.f == READ
    }


def _kept(operations: Operations, txns: list[Txn], group: _Group) -> list[int]:
    """The transactions of a group without those in doubt of which nothing was read."""
    values = _read(operations, txns)
    return [
        number
        for number in group.txns
        if operations.outcome[number] != INFO
        or any(micro.f == WRITE and (micro.key, micro.value) in values for micro in txns[number])
    ]


def _exact(group: _Group) -> Step:
    return _coarse(group, None)


def _coarse(group: _Group, read: set[tuple[int, int]] | None) -> Step:
    """Return the steps between states, with one value for all that no transaction read (``read``: None keeps all)."""
    positions = group.keys

    def step(state: tuple[Any, ...], txn: Txn) -> tuple[Any, ...] | None:
        values: list[Any] = list(state)
        for f, key, value in txn:
            if f == WRITE:
                is_kept = read is None or (key, value) in read
                values[positions[key]] = value if is_kept else _UNREAD
            elif values[positions[key]] != value:
                return None
        return tuple(values)

    return step


def _transaction_name(txn: Txn) -> str:
    micros = [
        f"write {value} to {key}" if f == WRITE else f"read {value} of {key}"
        for f, key, value in txn[: phrases.MAX_LISTED]
    ]
    more = ", …" if len(txn) > phrases.MAX_LISTED else ""
    return f"transaction ({', '.join(micros)}{more})"


LINEARIZABLE_MULTI_REGISTER: Final = Property(
    name="linearizable-multi-register",
    promise="Each transaction takes effect at one moment between its call and its end.",
    unit="transactions that read",
    unknown="No transaction read a value, the search for an order gave up at its bound, or events cannot be paired.",
    source="Herlihy and Wing (1990); Lowe (2017); Knossos' multi-register.",
    check=LinearizableMultiRegister,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.LINEARIZABLE_MULTI_REGISTER,
)

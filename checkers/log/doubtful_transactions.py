"""Records of transactions in doubt: one that was polled proves that all others of its transaction are in their logs.

A transaction is in doubt if it ended with ``info`` or has no completion. It is atomic, and consumers are given what is
committed. So a poll that returned one of its records proves that it was committed, and its other records count as
acknowledged from the end of that poll on. Such a record is ``unseen`` if no poll ever returned it, though a consumer
began later to read its log to the end (``read_to_end``). Its offset is unknown, and not needed: consumers read a log
from its start. Smallest break: a transaction in doubt sends 7 to x and 8 to y, a poll returns 7, then a consumer reads
the last record of y, and nothing after it.

Such a record is a ``lost-write`` if no poll ever returned it, but a poll returned a record that was sent to its log
later than that: the log had the record by then, so the other one has a larger offset. Smallest break: a transaction in
doubt sends 7 to x and 8 to y, a poll returns 7, then 9 is sent to y, and a poll returns 9.

Each send or poll by itself counts as a transaction, as in the workload. A poll of the transaction itself proves
nothing (``precommitted-read``), nor does a value that was sent to its log several times.

``records_in_doubt`` looks at one log, ``missed_in_doubt`` at all of them together. Limits: those of ``read_to_end``. A
log that the commit has not reached by the end of the history looks as if it had lost the record. Consumers of
uncommitted records prove no commit: the check does not ask then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.log.polls_in_doubt import Missed, Reader, readers_of
from nemesis.checkers.log.read_to_end import EndOfLog
from nemesis.history.events import Kind

OPEN = -1
"""The end of a transaction that has none."""


class TransactionName(NamedTuple):
    """What all sends of one transaction share, and no send of another one."""

    process: str
    began: int
    ended: int
    """When it ended with ``info``, or ``OPEN``."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The first poll of one log that returned a record of a transaction."""

    ended: int
    tp: str
    value: int
    sent_row: int
    """The event of the send."""
    row: int
    """The event of the poll."""


@dataclass(frozen=True, slots=True)
class NeverRead:
    """A record of a transaction in doubt that no poll returned."""

    transaction: TransactionName
    value: int
    row: int
    """The event of the send."""


@dataclass(frozen=True, slots=True)
class LaterRecord:
    """Of the records of one log that polls returned, the one whose send began last."""

    began: int
    value: int
    sent_row: int
    """The event of the send."""
    row: int
    """The event of the poll."""
    readers: tuple[Reader, ...]
    """The consumers that read it, or a record behind it."""


@dataclass(frozen=True, slots=True)
class RecordsInDoubt:
    """What one log shows of transactions in doubt."""

    tp: str
    proofs: dict[TransactionName, Proof]
    never_read: list[NeverRead]
    ends: list[EndOfLog]
    """The consumers that read this log to its end."""
    later: LaterRecord | None = None


@dataclass(frozen=True, slots=True)
class _Sends:
    """Sends in doubt, by value, each value once. Arrays of one length."""

    value: Numbers
    began: Numbers
    ended: Numbers
    row: Numbers
    process: list[str]

    def __len__(self) -> int:
        return len(self.value)

    def transaction(self, index: int) -> TransactionName:
        return TransactionName(self.process[index], int(self.began[index]), int(self.ended[index]))


def records_in_doubt(tp: str, everything: Segment, ends: list[EndOfLog]) -> RecordsInDoubt | None:
    """Return what a log shows of transactions in doubt; None if it has no record of one.

    ``everything``: all events of sends and polls of the log, invocations too.
    """
    sends = _sends_in_doubt(everything.where(everything.is_word("f", {"send"})))
    if not len(sends):
        return None
    polls = everything.where(everything.is_word("f", {"poll"}) & ~everything.is_kind(Kind.INVOKE))
    lengths = pc.fill_null(pc.list_value_length(polls.columns.arrow("values")), 0).to_numpy()
    poll = np.repeat(np.arange(len(polls)), lengths)
    read = np.asarray(pc.list_flatten(polls.columns.arrow("values")).to_numpy(), dtype=np.int64)
    time, row = polls.numbers("time")[poll], polls.rows[poll]
    send = np.minimum(np.searchsorted(sends.value, read), len(sends) - 1)
    # Events of different operations have different times.
    is_proof = (sends.value[send] == read) & (sends.ended[send] != time)
    proofs: dict[TransactionName, Proof] = {}
    positions = np.flatnonzero(is_proof)
    for position in positions[np.argsort(time[positions], kind="stable")].tolist():
        of_read = int(send[position])
        proof = Proof(
            int(time[position]),
            tp,
            int(read[position]),
            int(sends.row[of_read]),
            int(row[position]),
        )
        proofs.setdefault(sends.transaction(of_read), proof)
    offsets = polls.columns.arrow("offsets")
    read_offsets = np.asarray(pc.list_flatten(offsets).to_numpy(), dtype=np.int64)
    later = _later_record(everything, read, row)
    if later is not None:
        first = read_offsets[read == later.value].min()
        later = replace(later, readers=readers_of(polls, poll[read_offsets >= first]))
    last_began = max((end.began for end in ends), default=-1)
    last_began = max(last_began, -1 if later is None else later.began)
    is_missed = ~np.isin(sends.value, read) & (sends.began < last_began)
    never_read = [
        NeverRead(sends.transaction(index), int(sends.value[index]), int(sends.row[index]))
        for index in np.flatnonzero(is_missed).tolist()
    ]
    return RecordsInDoubt(tp, proofs, never_read, ends if never_read else [], later)


def _later_record(everything: Segment, read: Numbers, row: Numbers) -> LaterRecord | None:
    """``read``: what polls returned; ``row``: the events of these polls."""
    sends = everything.where(everything.is_word("f", {"send"}))
    begun = sends.where(sends.is_kind(Kind.INVOKE) & _is_sent_once(sends))
    begun = begun.where(np.isin(begun.numbers("value"), read))
    if not len(begun):
        return None
    last = int(np.argmax(begun.numbers("time")))
    value = int(begun.numbers("value")[last])
    poll = int(row[np.flatnonzero(read == value)[0]])
    return LaterRecord(int(begun.numbers("time")[last]), value, int(begun.rows[last]), poll, ())


def _sends_in_doubt(events: Segment) -> _Sends:
    """Return the sends in doubt whose values were sent once; ``events``: all of sends to one log."""
    ops = events.numbers("op")
    is_invoke, is_info = events.is_kind(Kind.INVOKE), events.is_kind(Kind.INFO)
    decided = ops[~is_invoke & ~is_info]
    begun = events.where(is_invoke & ~np.isin(ops, decided) & _is_sent_once(events))
    begun = begun.take(np.argsort(begun.numbers("value"), kind="stable"))
    ended = events.where(is_info)
    by_op = np.argsort(ended.numbers("op"), kind="stable")
    ended_ops = ended.numbers("op")[by_op]
    position = np.searchsorted(ended_ops, begun.numbers("op"))
    is_ended = np.append(ended_ops, OPEN)[position] == begun.numbers("op")
    index = np.append(by_op, 0)[position]
    codes, names = begun.codes("process")
    return _Sends(
        begun.numbers("value"),
        begun.numbers("time"),
        np.where(is_ended, np.append(ended.numbers("time"), OPEN)[index], OPEN),
        np.where(is_ended, np.append(ended.rows, OPEN)[index], begun.rows),
        [names[code] for code in codes.tolist()],
    )


def _is_sent_once(events: Segment) -> Mask:
    """For each event of a send, whether no other send has its value."""
    sends = np.unique(np.column_stack((events.numbers("op"), events.numbers("value"))), axis=0)
    values, counts = np.unique(sends[:, 1], return_counts=True)
    once: Mask = np.isin(events.numbers("value"), values[counts == 1])
    return once


def missed_in_doubt(logs: Sequence[RecordsInDoubt]) -> Iterator[Missed]:
    """Yield the records of transactions that are proved committed, which would have been read and never were."""
    proofs: dict[TransactionName, Proof] = {}
    for log in logs:
        for transaction, proof in log.proofs.items():
            known = proofs.get(transaction)
            if known is None or proof.ended < known.ended:
                proofs[transaction] = proof
    for log in logs:
        for record in log.never_read:
            first = proofs.get(record.transaction)
            if first is None:
                continue
            if log.later is not None and log.later.began > first.ended:
                yield Missed(_lost(log.tp, record, first, log.later), log.later.readers)
                continue
            ends = [end for end in log.ends if end.began > first.ended]
            if ends:
                readers = tuple(end.reader for end in ends)
                yield Missed(_finding(log.tp, record, first, ends[0]), readers)


def _lost(tp: str, record: NeverRead, proof: Proof, later: LaterRecord) -> Finding:
    sentence = (
        f"Value {record.value} of {tp} was never read, though value {later.value} was, which was sent after a poll had "
        f"returned value {proof.value} of {proof.tp}, which the same transaction sent."
    )
    sender, log = record.transaction.process, proof.tp
    steps = (
        f"A transaction of client {sender} sent {record.value} to {tp} and {proof.value} to {log}. Its end is unknown.",
        f"A poll returned {proof.value} of {log}: the transaction was committed, and {tp} has the record.",
        f"A send of {later.value} to {tp} began later, so its offset is larger.",
        f"A poll returned {later.value}, and no poll of the history returned {record.value}, at any offset.",
    )
    rows = (record.row, proof.sent_row, proof.row, later.sent_row, later.row)
    return finding("lost-write", tp, sentence, *dict.fromkeys(rows), steps=steps)


def _finding(tp: str, record: NeverRead, proof: Proof, end: EndOfLog) -> Finding:
    sentence = (
        f"Value {record.value} of {tp} was never read, though client {end.process} read the log to its end after a "
        f"poll had returned value {proof.value} of {proof.tp}, which the same transaction sent."
    )
    sender, reader, log = record.transaction.process, f"client {end.process}", proof.tp
    steps = (
        f"A transaction of client {sender} sent {record.value} to {tp} and {proof.value} to {log}. Its end is unknown.",
        f"A poll returned {proof.value} of {log}: the transaction was committed, and {tp} has the record.",
        f"A poll of {reader}, begun later, returned offset {end.last_offset} of {tp}, the last that was read.",
        f"The next poll of {reader} returned no record.",
    )
    rows = (record.row, proof.sent_row, proof.row, end.row, end.empty_row)
    return finding("unseen", tp, sentence, *dict.fromkeys(rows), steps=steps)

"""Anomalies of what became of sends. See ``client_log`` for the definitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.log.compaction import NEVER
from nemesis.checkers.log.partition_operations import FinalRead, Operations, Poll, Send


class Coverage:
    """The offsets that some polls went over: from the position asked for to the last record returned."""

    def __init__(self, polls: list[Poll]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(
            (poll.position, poll.end) for poll in polls if poll.end is not None
        ):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]


def lost_writes(operations: Operations) -> Iterator[Finding]:
    """Yield committed values that reads went past without returning them."""
    last_polls = operations.final_polls or operations.polls
    covered = Coverage(last_polls)
    read_values = {value for poll in last_polls for value in poll.values}
    reported: set[int] = set()
    for offset, value, row in operations.positions:
        if value in read_values or value in reported or offset not in covered:
            continue
        witness = next(
            poll
            for poll in last_polls
            if poll.end is not None and poll.position <= offset < poll.end
        )
        if operations.may_be_gone(offset, value, witness.time):
            continue
        if not operations.final_polls and operations.may_be_aborted_unknown(offset, value):
            continue  # the reader may have been one of committed records
        reported.add(value)
        sentence = (
            f"Value {value}, committed at offset {offset} of {operations.tp}, was gone when "
            f"{witness.process} read past that offset."
        )
        yield finding("lost-write", operations.tp, sentence, row, witness.row)


@dataclass(frozen=True, slots=True)
class Unseen:
    """Acknowledged values that the final reads did not return."""

    certain: list[Finding]
    """The reads went past their offsets."""
    tail: list[Finding]
    """The reads ended before their offsets: proves a loss only if the cluster had converged."""
    doubtful: list[Finding]
    """Why the final reads of this partition decide nothing."""


def unseen(operations: Operations) -> Unseen:
    """Return what the final reads should have returned and did not."""
    polls = operations.final_polls
    read_values = {value for poll in polls for value in poll.values}
    start = operations.log_start
    last = operations.final_reads[-1] if operations.final_reads else None
    time = NEVER if last is None else last.time
    missing = [
        send
        for send in operations.acknowledged
        if send.value not in read_values
        and send.offset >= start
        and not operations.may_be_gone(send.offset, send.value, time)
    ]
    covered = Coverage(polls)
    past = [send for send in missing if send.offset in covered]
    rest = [send for send in missing if send.offset not in covered]
    certain = [_unseen(operations, send, last) for send in past]
    if not rest:
        return Unseen(certain, [], [])
    reason, row = operations.doubt
    if reason is None:
        return Unseen(certain, [_unseen(operations, send, last) for send in rest], [])
    if len(rest) == 1:
        unread, is_lost = "1 acknowledged value of {} was not read", "it is lost"
    else:
        unread, is_lost = f"{len(rest)} acknowledged values of {{}} were not read", "they are lost"
    sentence = f"{unread.format(operations.tp)}. It is not decided whether {is_lost}: {reason}."
    doubt = finding("unseen", operations.tp, sentence, rest[0].row, row, verdict=Verdict.UNKNOWN)
    return Unseen(certain, [], [doubt])


def permitted_losses(operations: Operations) -> int:
    """Count the successful sends under acks 0 or 1 that the final reads do not have; 0 if these decide nothing.

    Not counted is what may have been deleted or superseded instead. An answer under acks 0 has no offset: such a send
    counts only if nothing was deleted from the beginning of the log.
    """
    if operations.doubt[0] is not None:
        return 0
    read_values = {value for poll in operations.final_polls for value in poll.values}
    time = operations.final_reads[-1].time
    return sum(
        send.value not in read_values
        and max(send.offset, 0) >= operations.log_start
        and not operations.may_be_gone(send.offset, send.value, time)
        for send in operations.sends
        if send.promises_nothing
    )


def vanished(operations: Operations) -> Iterator[Finding]:
    """Yield values that were read at offsets where final reads, which decide something, found the end of the log."""
    last = operations.final_reads[-1] if operations.final_reads else None
    if last is None or operations.doubt[0] is not None:
        return
    read_values = {value for poll in operations.final_polls for value in poll.values}
    reported: set[int] = set()
    for poll in operations.polls:
        if poll.is_final or poll.time > last.time:
            continue
        for offset, value in zip(poll.offsets, poll.values, strict=False):
            if offset < last.position or value in read_values or value in reported:
                continue
            reported.add(value)
            sentence = (
                f"Value {value} was read at offset {offset} of {operations.tp} and vanished: the final reads ended at "
                f"{last.position}."
            )
            yield finding("stale-read-above-hw", operations.tp, sentence, poll.row, last.row)


def _unseen(operations: Operations, send: Send, last: FinalRead | None) -> Finding:
    sentence = (
        f"Value {send.value}, acknowledged at offset {send.offset} of {operations.tp}, was not returned by the final "
        "reads."
    )
    return finding("unseen", operations.tp, sentence, send.row, None if last is None else last.row)


def duplicates(operations: Operations) -> Iterator[Finding]:
    """Yield values that stand at several offsets: wrong of an idempotent producer's, else only reported."""
    idempotent = {send.value for send in operations.sends if send.is_idempotent}
    stands: dict[int, tuple[int, int]] = {}
    reported: set[int] = set()
    for offset, value, row in operations.positions:
        first, first_row = stands.setdefault(value, (offset, row))
        if offset != first and value not in reported:
            reported.add(value)
            sentence = (
                f"Value {value} stands at offset {first} and at offset {offset} of {operations.tp}."
            )
            verdict = Verdict.INVALID if value in idempotent else Verdict.VALID
            yield finding("duplicate", operations.tp, sentence, first_row, row, verdict=verdict)


def dirty_reads(operations: Operations) -> Iterator[Finding]:
    """Yield values that were read though their send had certainly failed."""
    failed = {send.value: send for send in operations.sends if send.outcome == "fail"}
    for _, value, row in operations.positions if failed else ():
        send = failed.pop(value, None)
        if send is not None:
            sentence = (
                f"Value {value} was read from {operations.tp} though its send had certainly failed."
            )
            yield finding("dirty-read", operations.tp, sentence, send.row, row)


def nonmonotonic_sends(
    operations: Operations, before_them: Mapping[str, Send] | None = None
) -> Iterator[Finding]:
    """Yield acknowledged sends of one producer, one after the other, at falling offsets.

    ``before_them`` has of each producer the one at the highest offset of those before the operations.
    """
    highest = dict(before_them or {})
    for send in operations.acknowledged:
        before = highest.get(send.process)
        if before is not None and before.time < send.invoke_time and send.offset <= before.offset:
            sentence = (
                f"{send.process} sent value {send.value} to {operations.tp} after {before.value} had been acknowledged "
                f"at offset {before.offset}, and it was acknowledged at offset {send.offset}."
            )
            yield finding("nonmonotonic-send", operations.tp, sentence, before.row, send.row)
        if before is None or send.offset > before.offset:
            highest[send.process] = send

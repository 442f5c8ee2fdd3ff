"""Anomalies of the order in which one consumer sees records. See ``client_log`` for the definitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.log.partition_operations import Operations, Poll

SKIP = "poll-skip"
BACKWARDS = "nonmonotonic-poll"


def order_of_polls(
    operations: Operations, before_them: Mapping[str, tuple[int, int]] | None = None
) -> Iterator[Finding]:
    """Yield poll-skip and nonmonotonic-poll: records skipped, repeated or backwards.

    ``before_them`` has of each consumer where its last poll before the operations ended, and that poll's row.
    """
    reached = dict(before_them or {})
    start_rows: dict[tuple[str, int], list[int]] = defaultdict(list)
    for start in operations.starts:
        start_rows[start.process, start.offset].append(start.row)
    for poll in operations.polls:
        before, before_row = reached.get(poll.process, (poll.position, -1))
        rows = start_rows.get((poll.process, poll.position), ())
        if poll.position > before and any(before_row < row < poll.row for row in rows):
            before = poll.position
        is_gap = poll.position > before and operations.may_be_skipped(
            before, poll.position, poll.time
        )
        if poll.position != before and not is_gap:
            name = SKIP if poll.position > before else BACKWARDS
            sentence = (
                f"{poll.process} polled {operations.tp} from {poll.position} though its last poll there had ended at "
                f"{before}."
            )
            yield finding(name, operations.tp, sentence, before_row, poll.row)
        yield from _within(operations, poll)
        reached[poll.process] = (max([poll.position - 1, *poll.offsets]) + 1, poll.row)


def _within(operations: Operations, poll: Poll) -> Iterator[Finding]:
    """At most one finding of each kind per poll: the first."""
    tp, expected, reported = operations.tp, poll.position, set()
    for offset in poll.offsets:
        is_gap = offset > expected and operations.may_be_skipped(expected, offset, poll.time)
        if offset != expected and not is_gap:
            name = SKIP if offset > expected else BACKWARDS
            if name not in reported:
                skipped = operations.gaps.first_unexplained(expected, offset)
                step = f"skipped offset {skipped}" if offset > expected else "went backwards"
                sentence = f"A poll of {tp} by {poll.process} from {poll.position} {step}: it returned offset {offset}."
                yield finding(name, tp, sentence, poll.row)
            reported.add(name)
        expected = max(expected, offset + 1)


def inconsistent_offsets(operations: Operations) -> Iterator[Finding]:
    """Yield offsets that held several values: acknowledged there, or read there."""
    holds: dict[int, tuple[int, int]] = {}
    reported: set[int] = set()
    for offset, value, row in operations.positions:
        first, first_row = holds.setdefault(offset, (value, row))
        if value != first and offset not in reported:
            reported.add(offset)
            sentence = f"Offset {offset} of {operations.tp} held value {first} and value {value}."
            yield finding("inconsistent-offset", operations.tp, sentence, first_row, row)


def reads_above_hw(operations: Operations) -> Iterator[Finding]:
    """Yield polls that returned a record at or above the high watermark of the same answer.

    Only where brokers trace: Kafka takes the high watermark for the answer before it reads.
    """
    for poll in operations.polls if operations.is_traced else ():
        if (
            not poll.offsets
            or poll.high_watermark is None
            or max(poll.offsets) < poll.high_watermark
        ):
            continue
        sentence = (
            f"{poll.process} was given offset {max(poll.offsets)} of {operations.tp} in an answer that states high "
            f"watermark {poll.high_watermark}."
        )
        yield finding("stale-read-above-hw", operations.tp, sentence, poll.row)


def reads_above_all_hws(operations: Operations) -> Iterator[Finding]:
    """Yield polls that returned a record at or above every high watermark that a leader had traced by then."""
    if operations.high_watermarks is None:
        return
    for poll in operations.polls:
        highest = operations.high_watermarks.by(poll.time) if poll.offsets else None
        if highest is None or max(poll.offsets) < highest[0]:
            continue
        sentence = (
            f"{poll.process} was given offset {max(poll.offsets)} of {operations.tp} when no leader had raised its "
            f"high watermark above {highest[0]}."
        )
        yield finding("stale-read-above-hw", operations.tp, sentence, highest[1], poll.row)

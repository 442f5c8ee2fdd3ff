"""Records that are committed and that a broker does not hand out: the anomaly **withheld** of ``client_log``.

A broker that is asked from offset n on answers with an error or with a batch that ends at n or behind it, if a record
lies between n and its high watermark: the first batch is returned, of any size (KIP-74). So an answer without an
error and without a batch denies that such a record exists. It is refuted by

* a record that was acknowledged or read at an offset from n on, and that neither a deletion nor a compaction may have
  taken, and
* a high watermark above that offset: the one that the same answer states, or one that the newest leader had answered to
  ListOffsets after its leadership began and before it was asked for the records. In one leadership of one process the
  high watermark never falls.

Final readers only are judged, as a fetch of theirs asks for one partition and keeps no session: the limit of a fetch
of several partitions may leave nothing for the last of them. And only where the final read ended without the record: it
was asked for again and again. Two such answers are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.log.partition_operations import (
    EndAnswer,
    FinalRead,
    Operations,
    Poll,
    newest_of,
)

WITHHELD = "withheld"
ANSWERS_NEEDED = 2
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Empty:
    """An answer without an error and without a batch."""

    poll: Poll
    high_watermark: int
    """The largest one that the broker had stated by then."""
    ended: EndAnswer | None = None
    """The answer to ListOffsets that states it, if the answer itself does not."""


def withheld(operations: Operations) -> Iterator[Finding]:
    """Yield the first record that a final read should have been given last and was not."""
    if not operations.final_reads or operations.final_reads[-1].is_complete:
        return
    last = operations.final_reads[-1]
    empties = _empties(operations, last)
    for offset, value, row in _committed(operations, last, empties):
        answers = [empty for empty in empties if empty.high_watermark > offset]
        if len(answers) >= ANSWERS_NEEDED:
            yield _finding(operations.tp, (offset, value, row), answers, last)
            return


def _empties(operations: Operations, last: FinalRead) -> list[Empty]:
    """The answers without a batch at the position at which a final read ended, of the broker that gave the last one."""
    polls = [
        poll
        for poll in operations.final_polls
        if poll.position == last.position and poll.row < last.row and _is_empty(poll)
    ]
    return [_empty(operations, poll) for poll in polls if poll.node == polls[-1].node]


def _is_empty(poll: Poll) -> bool:
    """Whether an answer has no batch that ends at the position or behind it, where the log has not begun later."""
    is_above_start = poll.log_start is not None and poll.log_start <= poll.position
    has_batch = poll.last_offset is not None and poll.last_offset >= poll.position
    return is_above_start and not has_batch and poll.end is None


def _empty(operations: Operations, poll: Poll) -> Empty:
    stated = poll.high_watermark or 0
    leader = newest_of(leader for leader in operations.leaders if leader.time <= poll.time)
    if leader is None or leader.node != poll.node:
        return Empty(poll, stated)
    ended = max(
        (
            end
            for end in operations.ends
            if end.node == poll.node and end.asked_time > leader.time and end.row < poll.row
        ),
        key=lambda end: end.offset,
        default=None,
    )
    if ended is None or ended.offset <= stated:
        return Empty(poll, stated)
    return Empty(poll, ended.offset, ended)


def _committed(
    operations: Operations, last: FinalRead, empties: list[Empty]
) -> list[tuple[int, int, int]]:
    """What must still be there from the position on, as (offset, value, row), in the order of offsets."""
    returned = {offset for poll in operations.final_polls for offset in poll.offsets}
    starts = [empty.poll.log_start or 0 for empty in empties]
    first = max([last.position, operations.log_start, *starts])
    return sorted(
        (offset, value, row)
        for offset, value, row in operations.positions
        if offset >= first
        and offset not in returned
        and row < last.row
        and not operations.may_be_gone(offset, value, last.time)
    )


def _finding(
    tp: str, record: tuple[int, int, int], answers: list[Empty], last: FinalRead
) -> Finding:
    offset, value, row = record
    first, final = answers[0], answers[-1]
    lasted_ms = (final.poll.time - first.poll.time) // _NS_PER_MS
    sentence = (
        f"Broker {final.poll.node} returned nothing of {tp} from offset {last.position} on, in {len(answers)} answers "
        f"without an error within {lasted_ms:,} ms, though value {value} is committed at offset {offset}: its high "
        f"watermark was {final.high_watermark}, and its log started at {final.poll.log_start}."
    )
    rows = [row, first.poll.row, final.poll.row, last.row]
    if final.ended is not None:
        rows.append(final.ended.row)
    return finding(WITHHELD, tp, sentence, *sorted(rows))

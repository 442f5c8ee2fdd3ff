"""One partition's client operations, gathered from its rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from nemesis.checkers.framework.event_list import succeeded
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.log.compaction import (
    Compaction,
    Reach,
    Sent,
    keys_of,
    reach_of,
    tombstones_of,
)
from nemesis.checkers.log.gaps import MARKER_COLUMNS, MARKER_KINDS, Gaps, markers_of
from nemesis.checkers.log.high_watermarks import HighWatermarks, high_watermarks, is_traced
from nemesis.checkers.log.topic_incarnations import ALL_REPLICAS
from nemesis.checkers.unclean import Election, elections_in
from nemesis.history.events import IDEMPOTENT, NO_ERROR, Event, Kind

FINAL_READER = "final-"
LATEST = "latest-offset"

COLUMNS = (
    "op",
    "f",
    "value",
    "acks",
    "offset",
    "offsets",
    "values",
    "high_watermark",
    "node",
    "error",
    "topic",
    "topic_id",
    "partition",
    "strategy",
    "delivery",
    "leader",
    "leader_epoch",
    "log_end_offset",
    "log_start_offset",
    "key",
    "tombstone",
    "last_offset",
    "producer_id",
    *MARKER_COLUMNS,
)
_STOPPED: Final = MappingProxyType(
    {
        "NO_RECORDS": "the leader returned no more records",
        "END_UNKNOWN": "the leader did not answer where its log ends",
        "LEADER_UNKNOWN": "the brokers named no leader",
        "CLIENT_TIMED_OUT": "the time for final reads had ended",
    }
)
"""Why a final read ended before the end, by its error; see ``workloads.final_reads``."""
COMPLETIONS = {Kind.OK.value: "ok", Kind.FAIL.value: "fail", Kind.INFO.value: "info"}


@dataclass(slots=True)
class Send:
    process: str
    value: int
    acks: int | None
    invoke_row: int
    invoke_time: int
    is_idempotent: bool = False
    """Whether it may be in the log once only, however often its producer sent it."""
    op: int | None = None
    producer_id: int | None = None
    outcome: str = "info"
    """``ok``, ``fail`` (certainly not done) or ``info`` (unknown, also when no completion was recorded)."""
    row: int = -1
    """The completion's row; the invocation's while there is none."""
    time: int = -1
    offset: int = -1

    @property
    def is_acknowledged(self) -> bool:
        """Whether the system promised to keep it at ``offset``."""
        return self.outcome == "ok" and self.acks == ALL_REPLICAS and self.offset >= 0

    @property
    def promises_nothing(self) -> bool:
        """Whether it returned without an error under acks 0 or 1, so that the system may lose it."""
        return self.outcome == "ok" and self.acks in (0, 1)

    def complete(self, outcome: str, row: int, time: int, offset: int | None) -> None:
        self.outcome, self.row, self.time = outcome, row, time
        if outcome == "ok" and offset is not None:
            self.offset = offset


@dataclass(frozen=True, slots=True)
class Poll:
    """A successful poll."""

    process: str
    row: int
    time: int
    position: int
    offsets: list[int]
    values: list[int]
    node: int | None
    high_watermark: int | None = None
    """As the answer says."""
    read_to: int | None = None
    """Behind the last record that it returned, if not all of its records are here."""
    log_start: int | None = None
    """As the answer says."""
    last_offset: int | None = None
    """Of the answer's last batch, whose last records may have been compacted away; None if it has no batch."""

    @property
    def end(self) -> int | None:
        """Behind the last record that it returned; None if it returned none."""
        if self.read_to is not None:
            return self.read_to
        return max(self.offsets) + 1 if self.offsets else None

    @property
    def is_final(self) -> bool:
        return self.process.startswith(FINAL_READER)


@dataclass(frozen=True, slots=True)
class FinalRead:
    row: int
    time: int
    position: int
    high_watermark: int
    error: str | None
    start: int = 0
    """Where the log started by then, as the reader was told."""

    @property
    def is_complete(self) -> bool:
        """Whether it reached the high watermark that the leader stated."""
        return (
            self.error in (None, "NONE")
            and self.high_watermark >= 0
            and self.position >= self.high_watermark
        )


@dataclass(frozen=True, slots=True)
class EndAnswer:
    """A leader answered a final reader where the partition ends for consumers (ListOffsets)."""

    row: int
    asked_time: int
    node: int
    offset: int


@dataclass(frozen=True, slots=True)
class Leader:
    """A broker became leader, with a log of this length."""

    leader_epoch: int
    row: int
    time: int
    node: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class Start:
    """A reader was told where the log starts, because what it wanted was below; it went on from there."""

    process: str
    row: int
    offset: int


@dataclass
class Operations:
    """Everything that clients did on one partition, in history order. Nothing changes once it is complete."""

    tp: str
    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    final_reads: list[FinalRead] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    ends: list[EndAnswer] = field(default_factory=list)
    high_watermarks: HighWatermarks | None = None
    """What leaders have traced, if they trace."""
    is_traced: bool = False
    """Whether any broker traces what it does with the partition."""
    traced_start: int = 0
    """The largest log start offset that a broker traced."""
    keys: dict[int, int] = field(default_factory=dict)
    """By value, of records in a log that is compacted."""
    tombstones: frozenset[int] = frozenset()
    """The values whose records have none in such a log."""
    reach: Reach = field(default_factory=Reach)
    """How far the brokers' cleaners have come, if they trace."""
    at_rest: tuple[int, int] | None = None
    """The high watermark that the leader answered when the run had ended, and the row that says so."""
    unclean: list[Election] = field(default_factory=list)
    """The unclean elections: loss is excused if one of them was permitted."""
    gaps: Gaps = field(default_factory=Gaps)
    """What markers and aborted transactions explain."""
    has_traced_markers: bool = False
    in_files: tuple[int, int] = (0, 0)
    """From which offset on, and below which one, the files of brokers were read: markers there are known."""

    @cached_property
    def log_start(self) -> int:
        """Below it records were deleted by age, by size or on request: where the final read began, as far as some
        broker tells of it, if brokers trace at all."""
        stated = self.final_reads[-1].start if self.final_reads else 0
        return min(stated, self.traced_start) if self.leaders else stated

    @cached_property
    def compaction(self) -> Compaction:
        """Which records may be gone because later ones supersede them. What is aborted supersedes nothing.

        Neither does a send that certainly failed, unless its record was read.
        """
        return Compaction(
            self.keys,
            (
                Sent(send.value, send.invoke_time)
                for send in self.sends
                if send.outcome != "fail" or send.value in self._values_read
            ),
            (item for item in self.positions if not self._is_aborted(*item[:2])),
            self.reach if self.leaders else None,
            is_read_to_end=self.doubt[0] is None,
            tombstones=self.tombstones,
        )

    @cached_property
    def _values_read(self) -> set[int]:
        return {value for poll in self.polls for value in poll.values}

    @cached_property
    def _producer_ids(self) -> dict[int, int]:
        """By value, the producers of records that transactions may include."""
        return {send.value: send.producer_id for send in self.sends if send.producer_id is not None}

    def _is_aborted(self, offset: int, value: int) -> bool:
        return bool(self.gaps.aborted) and self.gaps.is_aborted(
            self._producer_ids.get(value), offset
        )

    def may_be_gone(self, offset: int, value: int, time: int) -> bool:
        """Whether readers may have been refused the record that was known there: it is aborted, or superseded."""
        return self._is_aborted(offset, value) or self.compaction.may_be_gone(offset, value, time)

    def may_be_skipped(self, start: int, end: int, time: int) -> bool:
        """Whether a reader may have been given nothing from one offset up to the other, exclusive."""
        return (
            self.gaps.explains(start, end)
            or self._may_be_unknown_markers(start, end)
            or self.compaction.may_be_skipped(start, end, time)
        )

    @cached_property
    def may_have_unknown_markers(self) -> bool:
        """Whether transactions wrote here, and nothing but files shows their markers: brokers that trace name all."""
        return not self.is_traced and not self.has_traced_markers and bool(self._producer_ids)

    def _may_be_unknown_markers(self, start: int, end: int) -> bool:
        """Whether nothing shows which of these offsets were markers, or records of aborted transactions.

        Files have none below the start of the log. There may be no files: a run that was interrupted has read none.
        What certainly stands there without a transaction has to be read all the same.
        """
        if not self.may_have_unknown_markers:
            return False
        if end <= self.log_start:
            return True
        first, behind = self.in_files
        index = bisect_left(self._without_transaction, start)
        stands = index < len(self._without_transaction) and self._without_transaction[index] < end
        return (start < first or end > behind) and not stands

    @cached_property
    def _without_transaction(self) -> list[int]:
        """The offsets of records that are of no transaction, ascending."""
        return sorted(
            {offset for offset, value, _ in self.positions if value not in self._producer_ids}
        )

    def may_be_aborted_unknown(self, offset: int, value: int) -> bool:
        """Whether nothing shows if the transaction of a record was aborted."""
        first, behind = self.in_files
        return (
            self.may_have_unknown_markers
            and value in self._producer_ids
            and not first <= offset < behind
        )

    @cached_property
    def doubt(self) -> tuple[str | None, int | None]:
        """Why records beyond the final reads may still exist, and the row that shows it; (None, None) if they may not.

        A consumer that has reached its leader's high watermark has seen everything only if that broker is the newest
        leader and its high watermark has reached the end of the log that it was elected with (KIP-207). Where brokers
        trace no elections, the final reads are believed; where they trace nothing, unless the leader answered a higher
        one at rest.
        """
        if not self.final_reads:
            return "no final read of it is recorded", None
        last = self.final_reads[-1]
        if not last.is_complete:
            stopped = f"the final read stopped at offset {last.position}, perhaps before the end"
            why = _STOPPED.get(last.error or "")
            return stopped if why is None else f"{stopped}, because {why}", last.row
        elected = [leader for leader in self.leaders if leader.time <= last.time]
        newest = newest_of(elected)
        if newest is None:
            return (None, None) if self.is_traced else self._doubt_at_rest(last)
        answered = [poll.node for poll in self.final_polls if poll.time <= last.time]
        if answered and answered[-1] not in (None, newest.node):
            reason = (
                f"broker {answered[-1]} answered the final read, which was no longer its leader"
            )
            return reason, newest.row
        if last.high_watermark < newest.log_end_offset:
            reason = (
                f"leader {newest.node} had raised its high watermark only to {last.high_watermark}, short of "
                f"{newest.log_end_offset} where its epoch began"
            )
            return reason, newest.row
        return None, None

    def _doubt_at_rest(self, last: FinalRead) -> tuple[str | None, int | None]:
        if self.at_rest is None or self.at_rest[0] <= last.position:
            return None, None
        mark, row = self.at_rest
        return f"its high watermark was {mark} when the run had ended", row

    @cached_property
    def acknowledged(self) -> list[Send]:
        return [send for send in self.sends if send.is_acknowledged]

    @cached_property
    def final_polls(self) -> list[Poll]:
        return [poll for poll in self.polls if poll.is_final]

    @cached_property
    def positions(self) -> list[tuple[int, int, int]]:
        """(offset, value, row) of every acknowledged send, then of every record read."""
        positions = [(send.offset, send.value, send.row) for send in self.acknowledged]
        for poll in self.polls:
            positions += [
                (offset, value, poll.row)
                for offset, value in zip_longest(poll.offsets, poll.values)
                if offset is not None and value is not None
            ]
        return positions


_READ = (
    "time",
    "process",
    "kind",
    "op",
    "f",
    "value",
    "acks",
    "delivery",
    "offset",
    "offsets",
    "values",
    "node",
    "error",
    "high_watermark",
    "leader_epoch",
    "log_end_offset",
    "log_start_offset",
    "leader",
    "last_offset",
    "producer_id",
)
"""The columns in the order in which ``gather`` unpacks them."""


def gather(
    tp: str,
    segment: Segment,
    *,
    opened: Iterable[Send] = (),
    ends: Mapping[int, int] | None = None,
) -> Operations:
    """Return the operations of one partition of one topic incarnation, or of some of its rows.

    ``opened`` are sends that were invoked before these rows; ``ends`` has, by row, the ``read_to`` of polls that are
    here without all of their records.
    """
    read_to = ends or {}
    keys = keys_of(segment)
    operations = Operations(
        tp,
        unclean=elections_in(segment).unclean(),
        high_watermarks=high_watermarks(segment),
        is_traced=is_traced(segment),
        keys=keys,
        tombstones=tombstones_of(segment) if keys else frozenset(),
        reach=reach_of(segment),
        ends=_end_answers(segment),
        gaps=Gaps.of(markers_of(segment)),
        has_traced_markers=bool(segment.is_kind(Kind.MARKER_APPENDED).any()),
        in_files=_in_files(segment),
    )
    segment = segment.where(~segment.is_kind(Kind.HIGH_WATERMARK, *MARKER_KINDS))
    pending: dict[tuple[str, int | None], Send] = {}
    for send in map(replace, opened):
        operations.sends.append(send)
        pending[send.process, send.op] = send
    positions: dict[tuple[str, int | None], int] = {}
    columns = (segment.values(name) for name in _READ)
    # Plain columns, not ``Segment.events``: clients' operations are the many, and an Event each is half the time.
    for (
        row,
        time,
        process,
        kind,
        op,
        f,
        value,
        acks,
        delivery,
        offset,
        offsets,
        values,
        node,
        error,
        mark,
        epoch,
        end,
        start,
        state_leader,
        last_offset,
        producer_id,
    ) in zip(segment.rows.tolist(), *columns, strict=True):
        if kind == Kind.INVOKE and f == "send" and value is not None:
            is_once = delivery == IDEMPOTENT
            send = Send(process, value, acks, row, time, is_once, op, producer_id, row=row)
            operations.sends.append(send)
            pending[process, op] = send
        elif kind == Kind.INVOKE and f == "poll" and offset is not None:
            positions[process, op] = offset
        elif kind in COMPLETIONS and f == "send":
            if (sent := pending.pop((process, op), None)) is not None:
                sent.complete(COMPLETIONS[kind], row, time, offset)
        elif kind == Kind.OK and f == "poll":
            position = positions.pop((process, op), offset)
            if position is None:
                position = offsets[0] if offsets else 0
            records = offsets or [], values or []
            stated = mark, read_to.get(row), start, last_offset
            operations.polls.append(Poll(process, row, time, position, *records, node, *stated))
        elif kind == Kind.FINAL_READ:
            read = FinalRead(row, time, _number(offset), _number(mark), error, start or 0)
            operations.final_reads.append(read)
        elif kind == Kind.OK and f == "log-start" and start is not None:
            operations.starts.append(Start(process, row, start))
        elif kind == Kind.LOG_START_OFFSET:
            operations.traced_start = max(operations.traced_start, start or 0)
        elif kind == Kind.REPLICA_OFFSETS and mark is not None and node == state_leader:
            operations.at_rest = mark, row
        elif kind == Kind.BECOME_LEADER:
            leader = Leader(_number(epoch), row, time, _number(node), _number(end))
            operations.leaders.append(leader)
    return operations


def _in_files(segment: Segment) -> tuple[int, int]:
    """From which offset to which one (exclusive) the files were read that are whole."""
    stored = segment.where(segment.is_kind(Kind.STORED_LOG) & segment.is_word("error", {NO_ERROR}))
    if not len(stored):
        return 0, 0
    starts, ends = stored.numbers("log_start_offset", 0), stored.numbers("log_end_offset", 0)
    return int(starts.min()), int(ends.max())


def _end_answers(segment: Segment) -> list[EndAnswer]:
    """What final readers were answered to ListOffsets."""
    answers: list[EndAnswer] = []
    asked: dict[tuple[str, int | None], int] = {}
    queries = segment.where(segment.is_word("f", {LATEST}))
    for row, event in queries.events("op", "node", "offset"):
        if event.process.startswith(FINAL_READER) and event.kind == Kind.INVOKE:
            asked[event.process, event.op] = event.time
        elif event.kind == Kind.OK and (event.process, event.op) in asked:
            asked_time = asked.pop((event.process, event.op))
            answers.append(EndAnswer(row, asked_time, _number(event.node), _number(event.offset)))
    return answers


def newest_of(leaders: Iterable[Leader]) -> Leader | None:
    """Return the last of these leaders, by leader epoch."""
    return max(leaders, key=lambda leader: (leader.leader_epoch, leader.row), default=None)


def _number(value: int | None) -> int:
    return -1 if value is None else value


def failed(event: Event) -> bool:
    """Whether a convergence check ended badly."""
    return event.kind == Kind.CONVERGENCE and not succeeded(event)

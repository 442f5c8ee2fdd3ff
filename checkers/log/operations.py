"""One partition's client operations, gathered from its rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from checkers.rare import succeeded
from checkers.segment import Segment
from checkers.unclean import UNCLEAN
from history.events import Event, Kind

ALL_REPLICAS = -1
"""``acks=all``: only such a send promises anything."""
FINAL_READER = "final-"

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
    "detail",
    "leader_epoch",
    "log_end_offset",
)
COMPLETIONS = {Kind.OK.value: "ok", Kind.FAIL.value: "fail", Kind.INFO.value: "info"}


@dataclass(slots=True)
class Send:
    process: str
    value: int
    acks: int | None
    invoke_row: int
    invoke_time: int
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

    @property
    def is_complete(self) -> bool:
        """Whether it reached the high watermark that the leader stated."""
        return (
            self.error in (None, "NONE")
            and self.high_watermark >= 0
            and self.position >= self.high_watermark
        )


@dataclass(frozen=True, slots=True)
class Leader:
    """A broker became leader, with a log of this length."""

    leader_epoch: int
    row: int
    time: int
    node: int
    log_end_offset: int


@dataclass(slots=True)
class Operations:
    """Everything that clients did on one partition, in history order."""

    tp: str
    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    final_reads: list[FinalRead] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    unclean: bool = False
    """Whether a leader was elected uncleanly: loss is excused if the configuration permits that."""

    @property
    def acknowledged(self) -> list[Send]:
        return [send for send in self.sends if send.is_acknowledged]

    @property
    def final_polls(self) -> list[Poll]:
        return [poll for poll in self.polls if poll.is_final]


def gather(tp: str, segment: Segment) -> Operations:
    """Return the operations of one partition of one topic incarnation."""
    operations = Operations(tp)
    pending: dict[tuple[str, int | None], Send] = {}
    positions: dict[tuple[str, int | None], int] = {}
    for row, event in segment.events(*COLUMNS):
        if event.kind == Kind.INVOKE and event.f == "send" and event.value is not None:
            send = Send(event.process, event.value, event.acks, row, event.time, row=row)
            operations.sends.append(send)
            pending[event.process, event.op] = send
        elif event.kind == Kind.INVOKE and event.f == "poll" and event.offset is not None:
            positions[event.process, event.op] = event.offset
        elif event.kind in COMPLETIONS and event.f == "send":
            _complete(pending.pop((event.process, event.op), None), row, event)
        elif event.kind == Kind.OK and event.f == "poll":
            position = positions.pop((event.process, event.op), event.offset)
            operations.polls.append(_poll(row, event, position))
        elif event.kind == Kind.FINAL_READ:
            operations.final_reads.append(
                FinalRead(
                    row,
                    event.time,
                    _number(event.offset),
                    _number(event.high_watermark),
                    event.error,
                )
            )
        elif event.kind == Kind.BECOME_LEADER:
            operations.leaders.append(
                Leader(
                    _number(event.leader_epoch),
                    row,
                    event.time,
                    _number(event.node),
                    _number(event.log_end_offset),
                )
            )
        elif event.kind == Kind.LEADER_ELECTED and event.detail == UNCLEAN:
            operations.unclean = True
    return operations


def _complete(send: Send | None, row: int, event: Event) -> None:
    if send is None:
        return
    send.outcome = COMPLETIONS[event.kind]
    send.row, send.time = row, event.time
    if send.outcome == "ok" and event.offset is not None:
        send.offset = event.offset


def _poll(row: int, event: Event, position: int | None) -> Poll:
    offsets, values = event.offsets or [], event.values or []
    if position is None:
        position = offsets[0] if offsets else 0
    return Poll(event.process, row, event.time, position, offsets, values, event.node)


def _number(value: int | None) -> int:
    return -1 if value is None else value


def failed(event: Event) -> bool:
    """Whether a convergence check ended badly."""
    return event.kind == Kind.CONVERGENCE and not succeeded(event)

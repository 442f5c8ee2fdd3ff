"""What clients did around a finding: a lane for each client, a bar for each operation from its call to its return.

Operations of the partition that the finding is about, or of all partitions if it names none. What does not fit is left
out, the farthest from the proof first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nemesis.checkers.framework.segment import ALWAYS, Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import History
from nemesis.reports.charts.scale import multiples, rounded_step
from nemesis.reports.diagram.gather import ProofTimes
from nemesis.reports.figures import OUTCOME_COLOURS
from nemesis.reports.lanes import Bar, Lane, lane_of
from nemesis.reports.series import NS
from nemesis.reports.wording import text

AROUND_NS: Final = 1_000_000_000
"""How long before and after an event of the proof operations are shown."""
LONGEST_NS: Final = 60_000_000_000
"""Calls that are older are not read."""
MAX_OPERATIONS: Final = 48
MAX_LANES: Final = 12
MARGIN: Final = 0.02
"""Share of the axis that is left free at both ends."""

_COLUMNS: Final = (
    *ALWAYS,
    *("op", "f", "value", "values", "offset", "offsets", "topic", "partition", "error"),
    *("micro_operations", "original"),
)
_ENDS: Final = (Kind.OK, Kind.FAIL, Kind.INFO)
OPEN_COLOUR: Final = "#8b8f98"


@dataclass(frozen=True, slots=True)
class Call:
    """An operation of a client; ``end`` is ``None`` if it did not return."""

    begin: Event
    end: Event | None

    def distance(self, proof_times: Iterable[int]) -> int:
        """Return the nanoseconds to the nearest time of the proof; 0 if the operation ran then."""
        stop = self.begin.time if self.end is None else self.end.time
        return min(max(self.begin.time - time, time - stop, 0) for time in proof_times)

    @property
    def outcome(self) -> str:
        return "open" if self.end is None else self.end.kind

    def words(self, *, is_partition_named: bool) -> str:
        """Return what was called and returned: ``send 17 → offset 42``."""
        event = self.begin if self.end is None else self.end
        parts = [self.begin.f or "?"]
        if is_partition_named and event.topic and event.partition is not None:
            parts.append(f"{event.topic}-{event.partition}")
        values = (event.value, event.values, event.original)
        parts += [text(value) for value in values if value is not None]
        if event.offset is not None:
            parts.append(f"→ offset {event.offset}")
        elif event.offsets:
            parts.append(f"→ offsets {text(event.offsets)}")
        if event.error:
            parts.append(f"→ {event.error}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class ClientLanes:
    """The lanes with a time axis of their own; bars count from its beginning."""

    lanes: tuple[Lane, ...]
    duration_s: float
    ticks: tuple[tuple[float, str], ...]
    proof_s: tuple[float, ...]
    """When the events of the proof happened."""
    subject: str
    """The partition that all operations are about; empty if they are about several."""
    left_out: int


def client_lanes(history: History, instants: ProofTimes, origin_ns: int) -> ClientLanes | None:
    """Return the operations around the proof; None if no client did anything then."""
    if not instants.proof_times:
        return None
    near = sorted(
        _near(_calls(history, instants), instants.proof_times),
        key=lambda call: call.distance(instants.proof_times),
    )
    kept: dict[str, list[Call]] = {}
    for call in near[:MAX_OPERATIONS]:
        if call.begin.process in kept or len(kept) < MAX_LANES:
            kept.setdefault(call.begin.process, []).append(call)
    if not kept:
        return None
    return _laid_out(kept, instants, origin_ns, len(near) - sum(map(len, kept.values())))


def _near(calls: Iterable[Call], proof_times: Sequence[int]) -> Iterator[Call]:
    return (call for call in calls if call.distance(proof_times) <= AROUND_NS)


def _calls(history: History, instants: ProofTimes) -> Iterator[Call]:
    """The operations about the subject of the finding, with how they ended."""
    begun: dict[tuple[str, int | None], Event] = {}
    for event in sorted(_operations(history, instants), key=lambda event: (event.time, event.seq)):
        key = (event.process, event.op)
        if event.kind == Kind.INVOKE:
            begun[key] = event
        elif key in begun:
            yield Call(begun.pop(key), event)
    yield from (Call(event, None) for event in begun.values())


def _operations(history: History, instants: ProofTimes) -> Iterator[Event]:
    """Calls and returns of the longest operations that can be shown."""
    first = instants.proof_times[0] - LONGEST_NS
    last = instants.proof_times[-1] + LONGEST_NS
    for group in history.row_groups:
        rows = Segment.starting_at(group.read(_COLUMNS), group.first_row)
        time = rows.numbers("time")
        wanted = rows.is_kind(Kind.INVOKE, *_ENDS) & (rows.numbers("op") >= 0)
        wanted &= (time >= first) & (time <= last)
        if instants.subject is not None:
            topic, partition = instants.subject
            wanted &= rows.is_word("topic", [topic]) & (rows.numbers("partition") == partition)
        yield from (event for _, event in rows.where(wanted).events())


def _laid_out(
    kept: Mapping[str, list[Call]], instants: ProofTimes, origin_ns: int, left_out: int
) -> ClientLanes:
    begins = [call.begin.time for own in kept.values() for call in own]
    ends = [call.end.time for own in kept.values() for call in own if call.end is not None]
    start, stop = (
        min([*begins, *instants.proof_times]),
        max([*begins, *ends, *instants.proof_times]),
    )
    margin = max((stop - start) * MARGIN, 1.0)
    axis = _Axis(origin_ns, (start - margin - origin_ns) / NS, (stop + margin - origin_ns) / NS)
    lanes = [
        lane_of(name, [[_bar(call, instants, axis) for call in own]], axis.duration_s)
        for name, own in sorted(kept.items())
    ]
    return ClientLanes(
        lanes=tuple(lanes),
        duration_s=axis.duration_s,
        ticks=axis.ticks(),
        proof_s=tuple(dict.fromkeys(axis.position(time) for time in instants.proof_times)),
        subject="" if instants.subject is None else "{}-{}".format(*instants.subject),
        left_out=left_out,
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """The part of the run's time that the lanes show, in seconds of the run."""

    origin_ns: int
    start_s: float
    stop_s: float

    @property
    def duration_s(self) -> float:
        return self.stop_s - self.start_s

    def position(self, time: int) -> float:
        """Return the seconds from the beginning of the axis to a time of the history."""
        return (time - self.origin_ns) / NS - self.start_s

    def ticks(self) -> tuple[tuple[float, str], ...]:
        step = rounded_step(self.duration_s, 8)
        values = multiples(self.start_s, self.stop_s, step)
        return tuple((value - self.start_s, f"{value:,.10g}") for value in values)


def _bar(call: Call, instants: ProofTimes, axis: _Axis) -> Bar:
    begin_s = axis.position(call.begin.time)
    end_s = axis.duration_s if call.end is None else axis.position(call.end.time)
    shown = f"{axis.start_s + begin_s:,.6f}" + (
        " s, no return" if call.end is None else f"–{axis.start_s + end_s:,.6f} s"
    )
    proof = {(event.process, event.op) for event in instants.events if event.op is not None}
    is_proof = (call.begin.process, call.begin.op) in proof
    return Bar(
        start_s=begin_s,
        stop_s=end_s,
        text=call.words(is_partition_named=instants.subject is None),
        title=f"{call.words(is_partition_named=True)} ({call.outcome}), {shown}",
        shade=OUTCOME_COLOURS.get(call.outcome, OPEN_COLOUR),
        look="call proof" if is_proof else "call",
    )

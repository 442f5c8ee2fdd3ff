"""A setting of a topic takes effect on the brokers soon after an administrator has changed it.

**settings-take-effect**: of the setting ``max.message.bytes`` of a topic,
(a) no leader takes a batch that is larger than every value that may be in force while the batch is sent;
(b) no leader refuses a batch with MESSAGE_TOO_LARGE that is not larger than any of these values.
Smallest breaks: 100 is set, the bound passes, (a) a batch of 200 bytes is acknowledged, (b) a batch of 50 bytes is
refused as too large.

Which values may be in force: a change takes effect at any time after it was sent. It is *settled* when it has succeeded
and no fault has been in force for twice the session time-out and a tick since, unless another change of the topic was
under way meanwhile. A value may be in force unless its change had ended before a settled change was sent. Before the
first settled change the broker's own setting may count, which is not known: nothing is judged then, nor while a change
to the broker's setting may be in force. A batch counts as being sent until its operation has ended: an idempotent
producer sends it again and again.

Why the bound holds: the change is written to ZooKeeper before it is answered, and with it a notification. ZooKeeper
tells every broker that has a session; a broker that does not hear of ZooKeeper for the session time-out has lost its
session, and reads all notifications in the next one. The second time-out is for that. A broker that starts, or gets a
replica, reads the settings before it leads.

What a correct cluster does and is not convicted for: a change whose outcome is unknown, which may take effect at any
time; two changes at once, one of which may undo the other: Kafka writes all settings of a topic as it has read them,
over what was written meanwhile (the reference compares and sets); a send with ``acks=0``, which no broker answers; a
change during a fault; a topic that is deleted, with its settings, and created again (it is not judged). On real
runtimes a finding is ``unknown`` where the machine may explain it (``unexplained``).

Limits: other settings are changed, and not judged. The size of a batch is recorded by workloads with administrators.
Source: TopicConfigHandler, ZkNodeChangeNotificationListener, LogValidator of Kafka 3.9; KIP-339.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import settings_in_force as breaks
from nemesis.checkers.explain import settings_in_force as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.liveness.recovery_bound import session_bound_ms
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

MAX_MESSAGE_BYTES: Final = "max.message.bytes"
TOO_LARGE: Final = "MESSAGE_TOO_LARGE"
NO_ACKS: Final = 0
"""A send that no broker answers: it succeeds when it is sent."""
_ALTER: Final = "alter-config"
_DELETE: Final = "delete-topic"
_OPERATIONS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)
_UNTIL: Final = "final-reads"
_MS: Final = 1_000_000


class Batch(NamedTuple):
    """What a leader answered to a batch."""

    topic: str
    op: int
    time: int
    size: int
    is_taken: bool
    row: int


@dataclass(slots=True)
class Change:
    """An administrator changed a setting of a topic."""

    setting: str
    value: int
    sent: int
    row: int
    ended: int | None = None
    """When it was answered; None if its outcome is unknown."""
    has_failed: bool = False
    is_alone: bool = True
    """Whether no other change of the topic was under way meanwhile: in Kafka one of the two may undo the other."""

    def overlaps(self, other: Change) -> bool:
        return _ends_after(self, other.sent) and _ends_after(other, self.sent)


@dataclass(slots=True)
class Observed:
    rows: list[Row] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=dict)
    """By operation, when a send was invoked: those of ``batches``, and those that have not ended."""
    answers: int = 0


class SettingsInForce(Fold[Observed]):
    kinds = frozenset({*_OPERATIONS, *unexplained.KINDS})
    columns = (
        *("f", "op", "topic", "setting", "value", "count", "error", "acks"),
        *(name for name in unexplained.COLUMNS if name != "setting"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (SETTINGS_TAKE_EFFECT,)

    def reduce(self, segment: Segment) -> Observed:
        are_operations = segment.is_kind(*_OPERATIONS)
        are_changes = segment.is_word("f", {_ALTER, _DELETE})
        are_sends = are_operations & segment.is_word("f", {"send"})
        others = segment.where(~are_operations | are_changes)
        rows = list(others.events(*self.columns)) if len(others) else []
        return (
            _sends(Observed(rows), segment.where(are_sends)) if are_sends.any() else Observed(rows)
        )

    def combine(self, a: Observed, b: Observed) -> Observed:
        batches = [*a.batches, *b.batches]
        return Observed(a.rows + b.rows, batches, a.sent | b.sent, a.answers + b.answers)

    def finish(self, summary: Observed) -> Results:
        rows, bound = summary.rows, session_bound_ms(summary.rows)
        changes = _changes(rows)
        judged = [batch for batch in summary.batches if batch.topic in changes]
        findings: list[Finding] = []
        if bound is not None and judged:
            rest = Rest(rows, 2 * bound * _MS)
            for batch in judged:
                invoked = summary.sent.get(batch.op)
                if invoked is not None:
                    findings += _judge(batch, invoked, changes[batch.topic], rest)
        return conclude(
            SETTINGS_TAKE_EFFECT,
            checked=summary.answers + len(changes),
            findings=findings,
            numbers={"changed_topics": float(len(changes)), "batches": float(len(judged))},
        )


class Rest:
    """When no fault was in force, and for how long the brokers have had time to follow a change."""

    def __init__(self, rows: Sequence[Row], bound_ns: int) -> None:
        self.rows = rows
        self.bound_ns = bound_ns
        self._windows = unexplained.without_faults(rows, _UNTIL)

    def since(self, change: Change, time: int) -> int | None:
        """Return from when on no fault was in force after a change that had succeeded; None if one is at this time."""
        if change.ended is None or change.has_failed or not change.is_alone:
            return None
        starts = [start for start, stop in self._windows if start <= time <= stop]
        return max(change.ended, starts[-1]) if starts else None

    def is_settled(self, change: Change, time: int) -> bool:
        since = self.since(change, time)
        return since is not None and time - since > self.bound_ns


def _sends(observed: Observed, sends: Segment) -> Observed:
    """Add the batches whose size is recorded, and the sends that have not ended."""
    invoked = sends.is_kind(Kind.INVOKE)
    ops, times = sends.numbers("op"), sends.numbers("time")
    has_size = ~invoked & (sends.numbers("count") >= 0)
    answered = sends.is_kind(Kind.OK, Kind.FAIL) & (sends.numbers("acks") != NO_ACKS)
    observed.answers = int(np.count_nonzero(answered))
    for row, event in sends.where(has_size & answered).events():
        is_taken = event.kind == Kind.OK
        if (is_taken or event.error == TOO_LARGE) and event.topic is not None:
            answer = (event.op or 0, event.time, event.count or 0, is_taken, row)
            observed.batches.append(Batch(event.topic, *answer))
    wanted = np.union1d(
        np.array([batch.op for batch in observed.batches], dtype=np.int64),
        np.setdiff1d(ops[invoked], ops[~invoked]),
    )
    is_wanted = invoked & np.isin(ops, wanted)
    observed.sent = dict(zip(ops[is_wanted].tolist(), times[is_wanted].tolist(), strict=True))
    return observed


def _changes(rows: Sequence[Row]) -> dict[str, list[Change]]:
    """By topic, the changes of the setting; without topics that an administrator deletes."""
    every: defaultdict[str, list[Change]] = defaultdict(list)
    pending: dict[tuple[str, int | None], Change] = {}
    deleted = {event.topic for _, event in rows if event.f == _DELETE}
    for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
        if event.f != _ALTER or event.topic is None:
            continue
        operation = (event.process, event.op)
        if event.kind == Kind.INVOKE:
            pending[operation] = Change(event.setting or "", event.value or 0, event.time, row)
            every[event.topic].append(pending[operation])
        elif (change := pending.get(operation)) is not None and event.kind != Kind.INFO:
            change.ended, change.row = event.time, row
            change.has_failed = event.kind == Kind.FAIL
    for changes in every.values():
        for change in changes:
            change.is_alone = not any(
                change.overlaps(other) for other in changes if other is not change
            )
    ours = {
        topic: [change for change in changes if change.setting == MAX_MESSAGE_BYTES]
        for topic, changes in every.items()
        if topic not in deleted
    }
    return {topic: changes for topic, changes in ours.items() if changes}


def _ends_after(change: Change, time: int) -> bool:
    return change.ended is None or change.ended >= time


def _judge(batch: Batch, invoked: int, changes: Sequence[Change], rest: Rest) -> Iterator[Finding]:
    """Yield what a batch refutes: that one of the values which may be in force was."""
    made = [change for change in changes if change.sent <= batch.time and not change.has_failed]
    settled = [change for change in made if rest.is_settled(change, invoked)]
    possible = [change for change in made if not _is_replaced(change, settled)]
    values = [change.value for change in possible]
    if not settled or min(values) < 0:
        return
    if batch.is_taken and batch.size > max(values):
        yield _finding(batch, invoked, max(possible, key=_value), settled, rest)
    elif not batch.is_taken and batch.size <= min(values):
        yield _finding(batch, invoked, min(possible, key=_value), settled, rest)


def _value(change: Change) -> int:
    return change.value


def _is_replaced(change: Change, settled: Sequence[Change]) -> bool:
    """Whether a change had ended before one was sent that has settled."""
    ended = change.ended
    return ended is not None and any(ended < later.sent for later in settled)


def _finding(
    batch: Batch, invoked: int, nearest: Change, settled: Sequence[Change], rest: Rest
) -> Finding:
    newest = max(settled, key=lambda change: change.sent)
    since = rest.since(newest, invoked) or 0
    answer = "took" if batch.is_taken else "refused"
    sentence = (
        f"A leader {answer} a batch of {batch.size:,} bytes for {batch.topic}, whose {MAX_MESSAGE_BYTES} had been "
        f"{nearest.value:,}, without an active fault, for {(invoked - since) // _MS:,} ms; brokers follow within "
        f"{rest.bound_ns // _MS:,} ms."
    )
    excuse = unexplained.excuse(rest.rows, since, invoked, (invoked - since - rest.bound_ns) // _MS)
    return finding(
        SETTINGS_TAKE_EFFECT.name,
        batch.topic,
        sentence if excuse is None else f"{sentence} But {excuse}.",
        newest.row,
        batch.row,
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


SETTINGS_TAKE_EFFECT: Final = Property(
    name="settings-take-effect",
    promise="A setting of a topic that an administrator has changed takes effect on the brokers.",
    unit="answers to sends, and changed topics",
    unknown="No send was answered, or the machine was slow.",
    source="TopicConfigHandler, ZkNodeChangeNotificationListener, LogValidator; KIP-339.",
    check=SettingsInForce,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.FAULTS, EventSource.HARNESS}),
    recorded_since=5,
    reason=explain.settings_take_effect,
    breaks=breaks.SETTINGS_TAKE_EFFECT,
)

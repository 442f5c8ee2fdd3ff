"""What of a run can be new beyond the counts of ``coverage``: orders, distances, and what happened under which fault.

A guided exploration keeps a run that reaches a feature which no run before it reached. The counts of ``coverage`` are
features too, but a few hundred seeds reach all of them. The features here are finer, and most runs have some of their
own:

* ``transitions in a row``: two successive transitions of a partition or of a replica, in the controller's machines;
* ``orders around elections``: after a leader election of a partition, which kind of event first happens to it directly
  after which, until its next election; and what happened last before the election;
* ``lags``: how far a log end is above its high watermark, how much a truncation removes, and how many records a new
  leader is behind the longest log;
* ``epoch distances``: between the epoch that a request, ISR or replica carries and the newest one;
* ``events under faults``: kinds of remarkable events while a fault is in force.

Numbers are put into buckets by powers of two. The groups are coarse on purpose: where most runs have a feature of
their own, all are kept and none is better than another. Which faults happen in which order is left out for the same
reason: it is what the plan says, not what the cluster did.

Limits: only traced events count. Lines and branches of the reference do not: counting them cheaply takes
``sys.monitoring`` of Python 3.12, the harness supports 3.11, and ``sys.settrace`` makes a run several times slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from nemesis.history.events import NO_ERROR, Event, Kind
from nemesis.history.znodes import PROCESS as ZOOKEEPER
from nemesis.searching.explore.coverage_counts import Coverage, Reach

ROWS: Final = "transitions in a row"
ELECTION_ORDERS: Final = "orders around elections"
LAGS: Final = "lags"
DISTANCES: Final = "epoch distances"
UNDER_FAULTS: Final = "events under faults"
GROUPS: Final = (ROWS, ELECTION_ORDERS, LAGS, DISTANCES, UNDER_FAULTS)

Feature = tuple[str, str]
"""(group, label)"""
PartitionKey = tuple[str | None, int | None]

_LOG_POSITIONS: Final = frozenset(
    {Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.LOG_LOADED, Kind.TRUNCATE}
)
"""These kinds state the log end, and the high watermark."""
_OF_ALL_PARTITIONS: Final = frozenset(
    {
        Kind.BROKER_STARTED,
        Kind.CONTROLLER_ELECTED,
        Kind.CONTROLLER_RESIGNED,
        Kind.SESSION_STATE,
    }
)
_OF_A_PARTITION: Final = frozenset(
    {
        *_LOG_POSITIONS,
        Kind.ALTER_PARTITION_HANDLED,
        Kind.ISR_CHANGE_COMMITTED,
        Kind.ISR_CHANGE_PROPOSED,
        Kind.PRODUCE_ACKNOWLEDGED,
        Kind.REPLICA_STOPPED,
    }
)

_VARIANTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        Kind.ALTER_PARTITION_HANDLED.value: "error",
        Kind.CONTROL_REQUEST_HANDLED.value: "error",
        Kind.ISR_CHANGE_PROPOSED.value: "change",
        Kind.LEADER_ELECTED.value: "strategy",
        Kind.REPLICA_STOPPED.value: "step",
        Kind.SESSION_STATE.value: "session_state",
    }
)
"""The column that tells the variants of a kind apart."""


def with_features(coverage: Coverage, events: Iterable[Event]) -> Coverage:
    """Return the coverage of one run with the groups of this module added."""
    counts: dict[str, Counter[str]] = {group: Counter() for group in GROUPS}
    for group, label in features(events):
        counts[group][label] += 1
    reached = {
        group: {label: Reach(count, 1) for label, count in sorted(labels.items())}
        for group, labels in counts.items()
    }
    return Coverage(coverage.runs, {**coverage.reached, **reached})


def features(events: Iterable[Event]) -> Iterator[Feature]:
    """Yield each feature that a run reaches, as often as it does. Events are in the order of time."""
    run = _Run()
    for event in events:
        if event.process != ZOOKEEPER:
            yield from run.read(event)


def bucket(number: int) -> str:
    """Return the bucket of a number: 0, <2, <4, <8, … and their negatives."""
    if number == 0:
        return "0"
    return f"{'-' if number < 0 else ''}<{1 << abs(number).bit_length()}"


@dataclass(slots=True)
class _Election:
    """The newest leader election of a partition, and what has happened to the partition since."""

    last: str
    steps: set[str] = field(default_factory=set)

    def follow(self, step: str) -> Iterator[Feature]:
        """Take a step; the first of its kind is a feature, after the step before it."""
        if step not in self.steps:
            self.steps.add(step)
            yield ELECTION_ORDERS, f"{self.last} > {step}"
            self.last = step


@dataclass(slots=True)
class _Run:
    """What of a run decides the next features."""

    transitions: dict[tuple[str | None, int | None, int | None], str] = field(default_factory=dict)
    elections: dict[PartitionKey, _Election] = field(default_factory=dict)
    log_ends: dict[PartitionKey, dict[str, int]] = field(default_factory=dict)
    """By partition and process."""
    leader_epochs: dict[PartitionKey, int] = field(default_factory=dict)
    """The newest that a controller chose."""
    controller_epoch: int | None = None
    """The newest."""
    faults: dict[int, str] = field(default_factory=dict)
    """Those in force, by their number."""

    def read(self, event: Event) -> Iterator[Feature]:
        """Yield the features that the event reaches."""
        partition = (event.topic, event.partition)
        if event.kind == Kind.APPEND:
            self._note_log_end(event, partition, event.last_offset)
            return
        if event.kind in _LOG_POSITIONS:
            yield from self._positions(event, partition)
        yield from self._distances(event, partition)
        if event.kind == Kind.TRANSITION:
            yield from self._transition(event)
        if event.kind == Kind.LEADER_ELECTED:
            yield from self._elected(event, partition)
        elif event.kind in _OF_A_PARTITION and partition in self.elections:
            yield from self.elections[partition].follow(_step(event))
        elif event.kind in _OF_ALL_PARTITIONS:
            for election in self.elections.values():
                yield from election.follow(_step(event))
        yield from self._under_faults(event)

    def _positions(self, event: Event, partition: PartitionKey) -> Iterator[Feature]:
        end, high_watermark = event.log_end_offset, event.high_watermark
        if end is None:
            return
        if high_watermark is not None:
            yield LAGS, f"{event.kind}: log end above high watermark {bucket(end - high_watermark)}"
        before = self.log_ends.get(partition, {}).get(event.process)
        if event.kind == Kind.TRUNCATE and before is not None:
            yield LAGS, f"truncate: removes {bucket(before - end)}"
        self._note_log_end(event, partition, end - 1)

    def _note_log_end(self, event: Event, partition: PartitionKey, last: int | None) -> None:
        if last is not None:
            self.log_ends.setdefault(partition, {})[event.process] = last + 1

    def _transition(self, event: Event) -> Iterator[Feature]:
        """A transition with an error did not happen; it is a feature, but no predecessor of the next."""
        subject = (event.topic, event.partition, event.replica)
        machine = "partition" if event.replica is None else "replica"
        before = self.transitions.get(subject, "start")
        states = f"{event.from_state}->{event.to_state}"
        if event.error is None:
            self.transitions[subject] = states
        failed = "" if event.error is None else "!"
        yield ROWS, f"{machine}: {before}, {states}{failed}"

    def _elected(self, event: Event, partition: PartitionKey) -> Iterator[Feature]:
        strategy = event.strategy or "?"
        before = self.elections.get(partition)
        if before is not None:
            yield ELECTION_ORDERS, f"{before.last} > elected:{strategy}"
        self.elections[partition] = _Election(f"elected:{strategy}")
        ends = self.log_ends.get(partition, {})
        own = ends.get(f"broker-{event.leader}")
        if own is not None:
            yield (
                LAGS,
                f"elected:{strategy}: behind the longest log {bucket(max(ends.values()) - own)}",
            )

    def _distances(self, event: Event, partition: PartitionKey) -> Iterator[Feature]:
        """Compare the epochs that the event carries with the newest; the controller's decisions set the newest."""
        if event.kind == Kind.CONTROLLER_ELECTED:
            self.controller_epoch = max(event.controller_epoch or 0, self.controller_epoch or 0)
            return
        if event.controller_epoch is not None and self.controller_epoch is not None:
            behind = bucket(self.controller_epoch - event.controller_epoch)
            yield DISTANCES, f"{event.kind}: controller epoch behind {behind}"
        if event.leader_epoch is None or event.topic is None:
            return
        newest = self.leader_epochs.get(partition)
        if event.kind == Kind.LEADER_ELECTED:
            self.leader_epochs[partition] = max(event.leader_epoch, newest or 0)
        elif newest is not None:
            yield (
                DISTANCES,
                f"{event.kind}: leader epoch behind {bucket(newest - event.leader_epoch)}",
            )

    def _under_faults(self, event: Event) -> Iterator[Feature]:
        if event.kind == Kind.FAULT_APPLIED and event.fault_id is not None:
            self.faults[event.fault_id] = event.fault or "?"
        elif event.kind == Kind.FAULT_HEALED and event.fault_id is not None:
            self.faults.pop(event.fault_id, None)
        elif self.faults and _is_remarkable(event):
            for fault in set(self.faults.values()):
                yield UNDER_FAULTS, f"{fault}: {event.kind}"


def _is_remarkable(event: Event) -> bool:
    if event.kind in (Kind.CONTROL_REQUEST_HANDLED, Kind.ALTER_PARTITION_HANDLED):
        return event.error not in (None, NO_ERROR)
    of_cluster = event.kind in _OF_A_PARTITION or event.kind in _OF_ALL_PARTITIONS
    return (
        of_cluster or event.kind == Kind.LEADER_ELECTED
    ) and event.kind != Kind.PRODUCE_ACKNOWLEDGED


def _step(event: Event) -> str:
    """Return what happened, in one word with what tells its variants apart."""
    column = _VARIANTS.get(event.kind)
    variant = None if column is None else getattr(event, column)
    return event.kind if variant is None else f"{event.kind}:{variant}"

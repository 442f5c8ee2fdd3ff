"""How long the cluster was without what its users need: measured, never held against it.

**liveness**: what the history shows of these, each as a distribution over the whole run and over each kind of fault to
which stretches are put down (``attribution``).

* *without-controller*: from the first finished failover on, no broker is controller. A broker is, from the end of its
  failover (``controller-failover``) until it resigns, its process ends, or it has lost ``/controller``; if that was by
  the expiry of its session, until it fell silent, a session time-out before.
* *without-leader*: of a partition, from when its first leader took over. A leader has taken over with the
  ``become-leader`` of the broker that the committed state names, and leads until another one is committed or its
  process ends.
* *isr-not-full*: the committed ISR lacks a replica; one that a reassignment is just adding need not be there.
* *below-min-isr*: the committed ISR is smaller than ``min.insync.replicas``, the topic's own or the brokers'.
* *unwritable*: clients send to the partition with acks=all for at least 100 ms and get no acknowledgement. Sends with
  acks 0 or 1 count neither as attempts nor as acknowledgements: a leader answers them without the other replicas.

When something happened: the log of ZooKeeper has an order and no comparable time, so a change counts from the moment at
which a broker first traced its zxid or a later one (the late end of its bracket; the early end may lie anywhere in an
idle time before). That a process has ended is known once the broker has started anew; it ended when a fault struck it
last before that, without such a fault with that start. So stretches are rather too short than too long, with one
exception: a session's last sign of life comes up to a heartbeat (a third of the time-out) before its owner is cut off.

A leader that is frozen or cut off leads until another one is committed: that nobody can write to it is *unwritable*.
Partitions count while they exist, up to the mark that their topic is to be deleted. What the traces do not show is not
measured, and named nowhere: a system without traces has *unwritable* alone. Nothing measured at all is ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Stretch
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import attribution, cluster, produce
from nemesis.checkers.liveness.produce import Produce
from nemesis.checkers.liveness.time_spans import Spans, intersection
from nemesis.checkers.zxid_times import ZxidTimes
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

MAX_STRETCHES: Final = 1_000
WITHOUT_CONTROLLER: Final = "without-controller"
WITHOUT_LEADER: Final = "without-leader"
NOT_FULL: Final = "isr-not-full"
BELOW_MIN: Final = "below-min-isr"
UNWRITABLE: Final = "unwritable"
_LABELS: Final = (WITHOUT_CONTROLLER, WITHOUT_LEADER, UNWRITABLE, BELOW_MIN, NOT_FULL)
_CLUSTER: Final = "the cluster"
_END: Final = "end"
_MS: Final = 1_000_000

Measured = tuple[str, str, Spans]
"""What, of what, when."""


@dataclass(slots=True)
class Summary:
    rows: list[Row] = field(default_factory=list)
    """All events but the clients'."""
    produce: dict[cluster.TopicPartition, Produce] = field(default_factory=dict)


class Liveness(Fold[Summary]):
    kinds = frozenset({*cluster.KINDS, *attribution.KINDS, *produce.OPERATIONS, Kind.PHASE})
    columns = (*cluster.COLUMNS, *attribution.COLUMNS, *produce.COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LIVENESS,)

    def reduce(self, segment: Segment) -> Summary:
        sent = segment.where(produce.sends(segment))
        cluster_rows = segment.where(~segment.is_kind(*produce.OPERATIONS))
        return Summary(
            list(cluster_rows.events(*cluster.COLUMNS, *attribution.COLUMNS)),
            {
                (topic, partition): produce.summarise(part)
                for (topic, partition), part in sent.by("topic", "partition")
                if topic is not None and partition is not None
            },
        )

    def combine(self, a: Summary, b: Summary) -> Summary:
        joined = dict(a.produce)
        for tp, later in b.produce.items():
            joined[tp] = produce.join(joined[tp], later) if tp in joined else later
        return Summary(a.rows + b.rows, joined)

    def finish(self, summary: Summary) -> Results:
        measured = list(_measure(summary))
        forces = attribution.in_force(summary.rows)
        stretches = {label: _stretches(label, measured, forces, summary) for label in _LABELS}
        distributions = [
            distribution
            for label in _LABELS
            if any(label == other for other, _, _ in measured)
            for distribution in attribution.distributions(label, stretches[label])
        ]
        result = conclude(
            LIVENESS,
            checked=len({key for _, key, _ in measured}),
            numbers={
                f"{distribution.label.replace('-', '_')}_longest_ms": distribution.max_ms
                for distribution in distributions
                if distribution.fault == attribution.ALL
            },
        )
        return msgspec.structs.replace(
            result,
            distributions=tuple(distributions),
            stretches=_longest([stretch for label in _LABELS for stretch in stretches[label]]),
        )


def _measure(summary: Summary) -> Iterator[Measured]:
    rows, end = summary.rows, _end(summary)
    times, deaths = ZxidTimes(rows), cluster.Deaths(rows)
    controller = cluster.without_controller(rows, times, deaths, end)
    if controller is not None:
        yield WITHOUT_CONTROLLER, _CLUSTER, controller
    partitions = cluster.partitions(rows, times)
    acts = _acts(rows)
    for tp, partition in sorted(partitions.items()):
        name = tp_name(*tp)
        if tp in acts:
            yield WITHOUT_LEADER, name, partition.without_leader(acts[tp], deaths, end)
        yield NOT_FULL, name, partition.not_full(end)
        yield BELOW_MIN, name, partition.below_min(end)
    for tp, sent in sorted(summary.produce.items()):
        unwritable = produce.unwritable(sent)
        if tp in partitions:
            unwritable = intersection(unwritable, partitions[tp].exists(end))
        yield UNWRITABLE, tp_name(*tp), unwritable


def _end(summary: Summary) -> int:
    """Up to when things were observed: the phase ``end`` of the run, else the last event."""
    ends = [event.time for _, event in summary.rows if _is_end(event)]
    sent = (int(part.tried[-1, 1]) for part in summary.produce.values() if len(part.tried))
    traced = (event.time for _, event in summary.rows)
    return max(ends, default=max([0, *traced, *sent]))


def _is_end(event: Event) -> bool:
    return event.kind == Kind.PHASE and event.phase == _END


def _acts(rows: Iterable[Row]) -> dict[cluster.TopicPartition, list[Event]]:
    """By partition, when brokers took its leadership over."""
    events: dict[cluster.TopicPartition, list[Event]] = {}
    for _, event in rows:
        if event.kind == Kind.BECOME_LEADER and event.topic is not None:
            events.setdefault((event.topic, event.partition or 0), []).append(event)
    return events


def _stretches(
    label: str, measured: Iterable[Measured], forces: Sequence[attribution.Force], summary: Summary
) -> list[Stretch]:
    end = _end(summary)
    return [
        Stretch(
            label=label,
            key=key,
            start_ns=start,
            stop_ns=stop,
            fault=attribution.put_down_to(forces, start, stop),
            is_over=stop < end,
        )
        for other, key, when in measured
        if other == label
        for start, stop in when.tolist()
    ]


def _longest(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    kept = sorted(stretches, key=lambda stretch: stretch.start_ns - stretch.stop_ns)[:MAX_STRETCHES]
    return tuple(
        sorted(
            kept, key=lambda stretch: (stretch.start_ns, _LABELS.index(stretch.label), stretch.key)
        )
    )


LIVENESS: Final = Property(
    name="liveness",
    promise="Measured, not judged: how long the cluster was without what its users need.",
    unit="partitions and controllers",
    unknown="Nothing could be measured.",
    source="A requirement of this harness: reports state how long users had to wait.",
    check=Liveness,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.FAULTS}),
    completed_by=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
)

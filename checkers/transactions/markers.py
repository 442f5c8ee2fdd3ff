"""The markers of transactions: each partition has its marker, and no deposed coordinator writes one.

* **marker-epoch-grows**: in the log of a replica, the coordinator epochs of one producer's markers never fall. So a
  coordinator that was deposed ends no transaction once its successor has ended one in this partition (KAFKA-9144).
  Smallest breaks: broker 1 appends a marker of coordinator epoch 2 for producer 7 at offset 1, and one of epoch 1 at
  offset 2; the same in the files of a broker.
* **torn-markers**: when a coordinator has written that a transaction is complete, each of its partitions has a marker
  of the producer with the same outcome and of this coordinator epoch. It was appended since the producer's transaction
  that was completed in this coordinator epoch before; what followers copy later does not count again.
  Smallest breaks: a transaction is complete, and no marker was appended; the only marker has another outcome; the
  only marker was appended before the producer's last complete transaction.

Why the second holds: the coordinator waits until the leader of each partition has answered that the marker is on all
in-sync replicas, and brokers trace a marker before they answer. A coordinator that goes on for another one sends all
markers again, with its own epoch. A partition that does not exist any more needs none.

What a correct cluster does and is not convicted for: it writes a marker twice, because an answer was lost or another
coordinator goes on; a coordinator that was paused learns only after its successor has completed the next transaction
that all its markers were written; markers that are cut are forgotten, and a log that was deleted begins
again; a marker may end a transaction of which the partition holds no data.

Limits: the outcome of the marker that ends the data is not compared with other partitions' if both markers are there:
a delayed marker of the transaction before may end the next one, which is Kafka's own weakness up to 3.9 (KIP-890). A
transaction whose completion no coordinator has traced is not judged.
Source: KIP-98; TransactionMarkerChannelManager, ProducerAppendInfo.checkCoordinatorEpoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.breaks import markers as breaks
from nemesis.checkers.explain import markers as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

WORKLOADS: Final = frozenset({"transactions"})
RESIZES: Final = frozenset(
    {Kind.TRUNCATE, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.REPLICA_STOPPED}
)


class Marker(NamedTuple):
    """A marker in one replica's log."""

    offset: int
    coordinator_epoch: int
    row: int


@dataclass(slots=True)
class Report:
    """What one partition came to."""

    markers: int = 0
    raised: int = 0
    """How often a producer's markers have one more coordinator epoch."""
    completed: int = 0
    falls: list[Finding] = field(default_factory=list)
    torn: list[Finding] = field(default_factory=list)


class Markers(Grouped[Report]):
    keys = ("topic", "partition")
    kinds = frozenset(
        {Kind.MARKER_APPENDED, Kind.STORED_MARKER, Kind.TRANSACTION_COMPLETED, *RESIZES}
    )
    columns = (
        *("topic", "partition", "node", "offset", "producer_id", "producer_epoch", "outcome"),
        *(
            "coordinator_epoch",
            "topic_id",
            "leader_epoch",
            "log_start_offset",
            "log_end_offset",
            "step",
        ),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (MARKER_EPOCH_GROWS, TORN_MARKERS)

    def check(self, key: Key, segment: Segment) -> Report:
        topic, partition = key
        report = Report()
        if topic is None:
            return report
        tp = tp_name(topic, partition)
        rows = list(segment.events(*self.columns))
        report.markers = sum(event.kind == Kind.MARKER_APPENDED for _, event in rows)
        report.raised = _raised(rows)
        report.completed = sum(event.kind == Kind.TRANSACTION_COMPLETED for _, event in rows)
        report.falls += _falls(tp, rows)
        report.torn += _torn(tp, rows)
        return report

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        reports = [report for _, report in summaries]
        return [
            conclude(
                MARKER_EPOCH_GROWS,
                checked=sum(report.markers for report in reports),
                findings=[item for report in reports for item in report.falls],
                numbers={
                    "raised_coordinator_epochs": float(sum(report.raised for report in reports))
                },
            ),
            conclude(
                TORN_MARKERS,
                checked=sum(report.completed for report in reports),
                findings=[item for report in reports for item in report.torn],
            ),
        ]


def _raised(rows: list[Row]) -> int:
    """Return how many coordinator epochs producers' markers have, beyond the first of each producer."""
    markers = [event for _, event in rows if event.kind == Kind.MARKER_APPENDED]
    epochs = {(event.producer_id, event.coordinator_epoch) for event in markers}
    return len(epochs) - len({producer_id for producer_id, _ in epochs})


def _falls(tp: str, rows: list[Row]) -> Iterator[Finding]:
    """Yield the markers whose coordinator epoch is below that of an earlier one, once in each log and in each file."""
    logs: dict[int | None, dict[int | None, list[Marker]]] = defaultdict(lambda: defaultdict(list))
    files: dict[tuple[int | None, int | None], Marker] = {}
    for row, event in rows:
        if event.kind in RESIZES:
            _resize(logs[event.node], event)
            continue
        if event.kind == Kind.TRANSACTION_COMPLETED:
            continue
        marker = Marker(event.offset or 0, event.coordinator_epoch or 0, row)
        if event.kind == Kind.STORED_MARKER:
            before = files.get((event.node, event.producer_id))
            files[event.node, event.producer_id] = marker
            medium = "the files"
        else:
            markers = logs[event.node][event.producer_id]
            before = markers[-1] if markers else None
            markers.append(marker)
            medium = "the log"
        if before is not None and marker.coordinator_epoch < before.coordinator_epoch:
            sentence = (
                f"In {medium} of broker {event.node} the marker at offset {marker.offset} of {tp}, for producer "
                f"{event.producer_id}, has coordinator epoch {marker.coordinator_epoch}, though the one at offset "
                f"{before.offset} has {before.coordinator_epoch}."
            )
            yield finding(MARKER_EPOCH_GROWS.name, tp, sentence, before.row, row)


def _resize(markers: dict[int | None, list[Marker]], event: Event) -> None:
    """Forget the markers that a log has not any longer; what stops without being deleted keeps its log."""
    if event.kind == Kind.REPLICA_STOPPED:
        if is_deleted(event):
            markers.clear()
        return
    end = kept_below(event)
    for producer_id, known in markers.items():
        markers[producer_id] = [marker for marker in known if marker.offset < end]


def is_deleted(stopped: Event) -> bool:
    """Whether a replica that stopped has given up its log."""
    return stopped.step in ("deleting", "delete")


def kept_below(event: Event) -> int:
    """Return the offset below which a log keeps what it held, by an event that states its extent.

    A log that is emptied keeps nothing, wherever it begins next.
    """
    end = event.log_end_offset or 0
    return 0 if event.log_start_offset == end else end


def _torn(tp: str, rows: list[Row]) -> Iterator[Finding]:
    """Yield the complete transactions that have no marker with their outcome."""
    since: dict[tuple[int | None, int | None], list[Row]] = defaultdict(list)
    """By producer and coordinator epoch, the markers since the last complete transaction, each once."""
    known = set()
    for row, event in rows:
        completes = event.producer_id, event.coordinator_epoch
        markers = since[completes]
        if event.kind == Kind.MARKER_APPENDED:
            marker = event.topic_id, event.leader_epoch, event.offset
            if marker not in known:
                known.add(marker)
                markers.append((row, event))
        elif event.kind == Kind.TRANSACTION_COMPLETED:
            if not any(_ends(marker, event) for _, marker in markers):
                others = [number for number, _ in markers[-1:]]
                yield finding(TORN_MARKERS.name, tp, _sentence(tp, event, markers), *others, row)
            since[completes] = [item for item in markers if item[1].time >= event.time]


def _ends(marker: Event, completed: Event) -> bool:
    return marker.outcome == completed.outcome and marker.producer_epoch == completed.producer_epoch


def _sentence(tp: str, event: Event, markers: list[Row]) -> str:
    instead = (
        f"the last marker of this coordinator there is {markers[-1][1].outcome} of epoch "
        f"{markers[-1][1].producer_epoch}"
        if markers
        else "this coordinator has appended no marker there since the producer's transaction before"
    )
    return (
        f"The coordinator on broker {event.node} completed a transaction of producer {event.producer_id}, epoch "
        f"{event.producer_epoch}, with {event.outcome} in {tp}, but {instead}."
    )


MARKER_EPOCH_GROWS: Final = Property(
    name="marker-epoch-grows",
    promise="The coordinator epochs of a producer's markers never fall in a log.",
    unit="markers",
    unknown="No broker traced a marker.",
    source="KAFKA-9144; KIP-98; ProducerAppendInfo.checkCoordinatorEpoch.",
    check=Markers,
    decided_from=frozenset({EventSource.TRACES}),
    workloads=WORKLOADS,
    recorded_since=10,
    reason=explain.marker_epoch_grows,
    breaks=breaks.MARKER_EPOCH_GROWS,
)

TORN_MARKERS: Final = Property(
    name="torn-markers",
    promise="Each partition of a complete transaction has a marker with its outcome.",
    unit="partitions of complete transactions",
    unknown="No coordinator traced that a transaction is complete.",
    source="KIP-98; TransactionMarkerChannelManager.",
    check=Markers,
    decided_from=frozenset({EventSource.TRACES}),
    workloads=WORKLOADS,
    recorded_since=10,
    reason=explain.torn_markers,
    breaks=breaks.TORN_MARKERS,
)

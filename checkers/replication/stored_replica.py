"""One replica's files, as they were read once its broker was stopped: batches as arrays, what is beside as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.history.events import NO_ERROR, Event, Kind


class Batches(NamedTuple):
    """A row for each batch, in the order of the files."""

    base: Numbers
    last: Numbers
    epoch: Numbers
    segment: Numbers
    """The base offsets of the segments that hold them."""
    position: Numbers
    """In bytes."""
    timestamp: Numbers
    """The largest of each, in ms."""
    producer: Numbers
    producer_epoch: Numbers
    sequence: Numbers
    """The first of each."""
    row: Numbers
    """The row of the history."""

    def __len__(self) -> int:
        return len(self.base)

    def where(self, mask: Mask) -> Batches:
        return Batches(*(column[mask] for column in self))


class Entry(NamedTuple):
    """Of an index; of an offset index it has a position, of a time index a time."""

    segment: int
    offset: int
    position: int | None
    timestamp: int | None
    row: int


class Epoch(NamedTuple):
    leader_epoch: int
    offset: int
    row: int


class Producer(NamedTuple):
    """The last batch of a producer, by a snapshot."""

    snapshot: int
    producer: int
    epoch: int
    sequence: int
    last_offset: int
    row: int


@dataclass(slots=True)
class Replica:
    node: int
    row: int
    start: int
    """By its checkpoint, or where its first leader epoch begins, which moves with the start at once."""
    checkpointed_start: int
    end: int
    cleaned_below: int
    recovery_point: int
    superseded: int | None
    damage: str | None
    batches: Batches
    segments: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By base offset: size in bytes, row."""
    index_entries: list[Entry] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    snapshots: list[tuple[int, int]] = field(default_factory=list)
    """Offset and row."""
    producers: list[Producer] = field(default_factory=list)
    _rolled: dict[int, Batches] | None = None

    def rolled_batches(self, segment: int) -> Batches | None:
        """Return the batches of a segment; None of the last one, which is written to, and of one that is damaged."""
        if self._rolled is None:
            self._rolled = dict(self._divide())
        return self._rolled.get(segment)

    def _divide(self) -> Iterator[tuple[int, Batches]]:
        last = max(self.segments, default=0)
        if self.damage is not None:
            last = min(last, int(self.batches.segment.max(initial=0)))
        for segment in self.segments:
            if segment < last:
                yield segment, self.batches.where(self.batches.segment == segment)


_BATCH: Final = (
    *("offset", "last_offset", "leader_epoch", "segment_offset", "position", "max_timestamp"),
    *("producer_id", "producer_epoch", "sequence"),
)
_OTHERS: Final = frozenset(
    {
        *(Kind.STORED_LOG, Kind.STORED_SEGMENT, Kind.STORED_INDEX_ENTRY, Kind.STORED_EPOCH),
        *(Kind.STORED_SNAPSHOT, Kind.STORED_PRODUCER),
    }
)


def replicas(segment: Segment) -> Iterator[Replica]:
    """Yield the logs of one partition whose files were read, and not only their batches, as until format 6."""
    stored = segment.only({Kind.STORED_BATCH})
    nodes = stored.numbers("node")
    table = [*(stored.numbers(name) for name in _BATCH), stored.rows]
    others: dict[int, list[tuple[int, Event]]] = defaultdict(list)
    for row, event in segment.only(_OTHERS).events():
        others[event.node or 0].append((row, event))
    for node, rows in sorted(others.items()):
        logs = [item for item in rows if item[1].kind == Kind.STORED_LOG]
        # A broker that has two logs of a replica moves it.
        if len(logs) == 1 and logs[0][1].recovery_point is not None:
            batches = Batches(*(column[nodes == node] for column in table))
            yield _replica(node, logs[0], batches, rows)


def _replica(
    node: int, log: tuple[int, Event], batches: Batches, rows: list[tuple[int, Event]]
) -> Replica:
    row, event = log
    replica = Replica(
        node=node,
        row=row,
        start=event.log_start_offset or 0,
        checkpointed_start=event.log_start_offset or 0,
        end=event.log_end_offset or 0,
        cleaned_below=event.cleaner_offset or 0,
        recovery_point=event.recovery_point or 0,
        superseded=event.superseded_offset,
        damage=None if event.error in (None, NO_ERROR) else event.error,
        batches=batches,
    )
    for number, item in rows:
        _add(replica, number, item)
    replica.epochs.sort(key=lambda epoch: epoch.offset)
    if replica.epochs:
        replica.start = max(replica.start, replica.epochs[0].offset)
    replica.index_entries.sort(key=lambda entry: (entry.segment, entry.offset))
    return replica


def _add(replica: Replica, row: int, event: Event) -> None:
    offset = event.offset or 0
    if event.kind == Kind.STORED_SEGMENT:
        replica.segments[offset] = (event.count or 0, row)
    elif event.kind == Kind.STORED_INDEX_ENTRY:
        replica.index_entries.append(
            Entry(event.segment_offset or 0, offset, event.position, event.max_timestamp, row)
        )
    elif event.kind == Kind.STORED_EPOCH:
        replica.epochs.append(Epoch(event.leader_epoch or 0, offset, row))
    elif event.kind == Kind.STORED_SNAPSHOT:
        replica.snapshots.append((offset, row))
    elif event.kind == Kind.STORED_PRODUCER:
        replica.producers.append(
            Producer(
                offset,
                event.producer_id or 0,
                event.producer_epoch or 0,
                event.sequence or 0,
                -1 if event.last_offset is None else event.last_offset,
                row,
            )
        )

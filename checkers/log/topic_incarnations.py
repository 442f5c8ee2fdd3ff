"""The lives of a partition: a topic that is deleted and created again has a new id, and a log of its own.

Polls name the id, so what is read is read of one life. Sends name the topic only: a send whose client had not yet heard
of the deletion ends up in the next life. So a send belongs to the life in which its value was read. If nobody read it,
it belongs to the one that its client had in mind, provided that this one was never deleted, or that the send was
acknowledged before any broker deleted its log; otherwise nobody can tell, and it is left out. What was acknowledged in
a life that was deleted may be gone.

**earlier-life-read**: what was read of one life is not read of another. Smallest break: two polls of orders-0 return
value 7, one of topic id A, the other of topic id B.

Limits: a value that nobody read before its topic was deleted is taken to have been sent to the life it is read in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

OPERATIONS = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO, Kind.FINAL_READ})
KINDS = frozenset({*OPERATIONS, Kind.ZNODE, Kind.REPLICA_STOPPED})
COLUMNS = ("f", "value", "values", "topic_id", "zk_op", "step")


@dataclass(frozen=True, slots=True)
class Life:
    rows: Segment
    was_deleted: bool
    """Whether ZooKeeper has deleted this partition: only then may its records be gone."""


@dataclass(frozen=True, slots=True)
class _Read:
    topic_id: str
    row: int


def lives(segment: Segment) -> list[Life]:
    """The lives of one partition. With one only, rows that name no topic id belong to it too."""
    ids = segment.values("topic_id")
    operations = segment.is_kind(*OPERATIONS).tolist()
    known = sorted({one for one, is_one in zip(ids, operations, strict=True) if is_one and one})
    if is_one_life(segment, known):
        return [Life(segment, was_deleted=False)]
    deleted = _deleted(segment)
    owners = _owners(segment, ids, deleted)
    return [
        Life(
            segment.take(
                np.array([i for i, owner in enumerate(owners) if owner == topic_id], dtype=np.int64)
            ),
            was_deleted=topic_id in deleted,
        )
        for topic_id in known
    ]


def is_one_life(segment: Segment, known: Collection[str]) -> bool:
    """Whether operations that name these topic ids are of one life, which was not deleted."""
    return len(known) <= 1 and _deleted(segment).isdisjoint(known)


def _deleted(segment: Segment) -> set[str | None]:
    """The topic ids whose deletion these rows tell of."""
    deletions = segment.is_kind(Kind.ZNODE) & segment.is_word("zk_op", {"delete"})
    return set(segment.where(deletions).values("topic_id")) if deletions.any() else set()


def _owners(segment: Segment, ids: list[str | None], deleted: set[str | None]) -> list[str | None]:
    """The life that each row belongs to."""
    homes = {value: reads[0].topic_id for value, reads in _reads(segment).items()}
    settled = _acknowledged_in_time(segment)

    def owner(topic_id: str | None, value: int) -> str | None:
        if value in homes:
            return homes[value]
        return topic_id if topic_id not in deleted or value in settled else None

    sends = segment.is_word("f", {"send"}).tolist()
    rows = zip(ids, sends, segment.values("value"), strict=True)
    return [owner(one, value) if is_send else one for one, is_send, value in rows]


def _acknowledged_in_time(segment: Segment) -> set[int]:
    """The values that were acknowledged before any broker began to delete a log of the life that their client meant."""
    stops: dict[str, int] = {}
    for _, event in segment.where(segment.is_kind(Kind.REPLICA_STOPPED)).events("topic_id", "step"):
        if event.step in ("deleting", "delete") and event.topic_id is not None:
            stops[event.topic_id] = min(event.time, stops.get(event.topic_id, event.time))
    acknowledged = segment.where(segment.is_kind(Kind.OK) & segment.is_word("f", {"send"}))
    columns = (acknowledged.values(name) for name in ("time", "topic_id", "value"))
    return {
        value
        for time, topic_id, value in zip(*columns, strict=True)
        if topic_id in stops and time < stops[topic_id]
    }


def earlier_life_reads(tp: str, segment: Segment) -> Iterator[Finding]:
    """Yield values that were read of several lives."""
    for value, (first, *others) in _reads(segment).items():
        for other in others:
            sentence = (
                f"Value {value} of {tp} was read of the topic with id {first.topic_id} and of the one with id "
                f"{other.topic_id}."
            )
            yield finding("earlier-life-read", tp, sentence, first.row, other.row)


def _reads(segment: Segment) -> dict[int, list[_Read]]:
    """Value → its first read of each life."""
    polls = segment.where(segment.is_kind(Kind.OK) & segment.is_word("f", {"poll"}))
    found: dict[int, list[_Read]] = {}
    columns = (polls.values(name) for name in ("topic_id", "values"))
    for row, topic_id, values in zip(polls.rows.tolist(), *columns, strict=True):
        for value in values or () if topic_id else ():
            reads = found.setdefault(value, [])
            if all(read.topic_id != topic_id for read in reads):
                reads.append(_Read(topic_id, row))
    return found

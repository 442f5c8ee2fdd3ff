"""The incarnations of a partition: a topic that is deleted and created again has a new id, and a log of its own.

Polls name the id, so what is read is read of one incarnation. Sends name the topic only: a send whose client had not
yet heard of the deletion ends up in the next incarnation. So a send belongs to the incarnation in which its value was
read. An unread send belongs to the one that its client had in mind, provided that this one was never deleted, or that
the send was acknowledged before any broker deleted its log; otherwise the incarnation is unknown, and the send is left
out, and counted (a number of ``unseen``). What was acknowledged in an incarnation that was deleted may be gone.

**earlier-life-read**: what was read of one incarnation is not read of another. Smallest break: two polls of orders-0
return value 7, one of topic id A, the other of topic id B.

Limits: a value that was not read before its topic was deleted is taken to have been sent to the incarnation in which it
is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

ALL_REPLICAS = -1
"""``acks=all``: only such a send promises anything."""
OPERATIONS = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO, Kind.FINAL_READ})
KINDS = frozenset({*OPERATIONS, Kind.ZNODE, Kind.REPLICA_STOPPED})
COLUMNS = ("f", "acks", "value", "values", "topic_id", "zk_op", "step")


@dataclass(frozen=True, slots=True)
class Incarnation:
    rows: Segment
    was_deleted: bool
    """Whether ZooKeeper has deleted this partition: only then may its records be gone."""


@dataclass(frozen=True, slots=True)
class _Read:
    topic_id: str
    row: int


def incarnations(segment: Segment) -> list[Incarnation]:
    """The incarnations of one partition. With one only, rows that name no topic id belong to it too."""
    ids = segment.values("topic_id")
    operations = segment.is_kind(*OPERATIONS).tolist()
    known = sorted(
        {topic_id for topic_id, is_one in zip(ids, operations, strict=True) if is_one and topic_id}
    )
    if is_single_incarnation(segment, known):
        return [Incarnation(segment, was_deleted=False)]
    deleted = _deleted(segment)
    owners = _owners(segment, ids, deleted)
    return [
        Incarnation(
            segment.take(
                np.array([i for i, owner in enumerate(owners) if owner == topic_id], dtype=np.int64)
            ),
            was_deleted=topic_id in deleted,
        )
        for topic_id in known
    ]


def is_single_incarnation(segment: Segment, known: Collection[str]) -> bool:
    """Whether operations that name these topic ids are of one incarnation, which was not deleted."""
    return len(known) <= 1 and _deleted(segment).isdisjoint(known)


def acknowledged_sends(segment: Segment) -> int:
    """Count the sends that were acknowledged under ``acks=all``."""
    sends = segment.is_kind(Kind.OK) & segment.is_word("f", {"send"})
    return int(np.count_nonzero(sends & (segment.numbers("acks", 0) == ALL_REPLICAS)))


def _deleted(segment: Segment) -> set[str | None]:
    """The topic ids whose deletion these rows report."""
    deletions = segment.is_kind(Kind.ZNODE) & segment.is_word("zk_op", {"delete"})
    return set(segment.where(deletions).values("topic_id")) if deletions.any() else set()


def _owners(segment: Segment, ids: list[str | None], deleted: set[str | None]) -> list[str | None]:
    """The incarnation that each row belongs to."""
    homes = {value: reads[0].topic_id for value, reads in _reads(segment).items()}
    settled = _acknowledged_in_time(segment)

    def owner(topic_id: str | None, value: int) -> str | None:
        if value in homes:
            return homes[value]
        return topic_id if topic_id not in deleted or value in settled else None

    sends = segment.is_word("f", {"send"}).tolist()
    rows = zip(ids, sends, segment.values("value"), strict=True)
    return [owner(topic_id, value) if is_send else topic_id for topic_id, is_send, value in rows]


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


def earlier_incarnation_reads(tp: str, segment: Segment) -> Iterator[Finding]:
    """Yield values that were read of several incarnations."""
    for value, (first, *others) in _reads(segment).items():
        for other in others:
            sentence = (
                f"Value {value} of {tp} was read of the topic with id {first.topic_id} and of the one with id "
                f"{other.topic_id}."
            )
            yield finding("earlier-life-read", tp, sentence, first.row, other.row)


def _reads(segment: Segment) -> dict[int, list[_Read]]:
    """Value → its first read of each incarnation."""
    polls = segment.where(segment.is_kind(Kind.OK) & segment.is_word("f", {"poll"}))
    first_reads: dict[int, list[_Read]] = {}
    columns = (polls.values(name) for name in ("topic_id", "values"))
    for row, topic_id, values in zip(polls.rows.tolist(), *columns, strict=True):
        for value in values or () if topic_id else ():
            reads = first_reads.setdefault(value, [])
            if all(read.topic_id != topic_id for read in reads):
                reads.append(_Read(topic_id, row))
    return first_reads

"""The events around partitions that are stuck, read once a violation is known.

Of the cluster all events of ``KINDS`` are kept; of a topic's partitions those of the wanted ones. Appends are many, so
each task keeps only the last ones that a question can be about: by partition and process, up to each of the times that
are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.reason import Case
from nemesis.checkers.framework.segment import ALWAYS, Mask, Segment
from nemesis.history.events import Kind
from nemesis.history.row_group import RowGroup
from nemesis.history.spark import run_all

if TYPE_CHECKING:
    from pyspark import SparkContext

KINDS: Final = frozenset(
    {
        Kind.ZNODE,
        Kind.SESSION_CLOSED,
        Kind.BROKER_STARTED,
        Kind.BROKER_REGISTERED,
        Kind.SESSION_STATE,
        Kind.CONTROLLER_ELECTED,
        Kind.CONTROLLER_FAILOVER,
        Kind.CONTROLLER_RESIGNED,
        Kind.BROKER_CHANGE_HANDLED,
        Kind.LEADER_ELECTED,
        Kind.ZNODE_OUTCOME,
        Kind.CONTROL_REQUEST_SENT,
        Kind.CONTROL_REQUEST_HANDLED,
        Kind.CONTROL_REQUEST_ANSWERED,
        Kind.METADATA_UPDATED,
        Kind.PARTITION_METADATA,
        Kind.ALTER_PARTITION_HANDLED,
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
        Kind.FETCH_ANSWERED,
        Kind.LOG_LOADED,
        Kind.TRUNCATE,
        Kind.ISR_CHANGE_PROPOSED,
    }
)
_COLUMNS: Final = (
    *(*ALWAYS, *znodes.COLUMNS, "incarnation", "broker_epoch", "partition_epoch", "zk_version"),
    *("api", "peer", "error", "change", "maximal_isr", "isr_epochs", "strategy", "live", "reason"),
    *("log_end_offset", "role"),
)

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which partitions, and up to when their last appends count."""

    partitions: frozenset[TopicPartition]
    times: frozenset[int]

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Wanted:
        """The partitions of these cases, up to the times of their events."""
        events = [event for case in cases for event in case.events]
        return cls(
            frozenset(
                (event.topic, event.partition)
                for event in events
                if event.topic is not None and event.partition is not None
            ),
            frozenset(event.time for event in events if event.time >= 0),
        )


def surroundings(
    groups: Sequence[RowGroup], wanted: Wanted, spark: SparkContext | None = None
) -> list[Row]:
    """Return the events around these partitions, in history order."""
    parts = run_all(spark, partial(_part, wanted), groups)
    return [row for part in parts for row in part]


def _part(wanted: Wanted, group: RowGroup) -> list[Row]:
    segment = Segment.of(group, _COLUMNS)
    topics = {topic for topic, _ in wanted.partitions}
    events = segment.only(KINDS)
    rows = [
        (row, event)
        for row, event in events.where(_is_about(events, topics)).events()
        if event.topic is None
        or event.partition is None
        or (event.topic, event.partition) in wanted.partitions
    ]
    appends = segment.only({Kind.APPEND})
    rows += _last_appends(appends.where(appends.is_word("topic", topics)), wanted)
    return sorted(rows, key=lambda item: item[0])


def _is_about(segment: Segment, topics: Collection[str]) -> Mask:
    codes, _ = segment.codes("topic")
    mask: Mask = (codes < 0) | segment.is_word("topic", topics)
    return mask


def _last_appends(appends: Segment, wanted: Wanted) -> Iterator[Row]:
    for (topic, partition_number, _), own in appends.by("topic", "partition", "process"):
        if (topic, partition_number) in wanted.partitions:
            yield from own.take(_last_until(own, wanted.times)).events()


def _last_until(own: Segment, times: Iterable[int]) -> np.ndarray:
    """The positions of the last rows up to each time, in order."""
    ascending = own.numbers("time")
    ends = np.searchsorted(ascending, np.array(sorted(times), dtype=np.int64), side="right")
    return np.unique(ends[ends > 0] - 1)

"""What a broker knows of the cluster never goes back.

* **metadata-never-back**: per partition of a topic incarnation, what a broker's metadata cache holds never falls, in
  one process life: neither the leader epoch nor, within one leader epoch, the partition epoch. ZooKeeper has named the
  leader that the cache has for a leader epoch.
  Smallest break: a broker applies leader epoch 4, then leader epoch 3.

What a correct cluster does and is not convicted for: metadata lag behind ZooKeeper, by different amounts on different
brokers; a broker starts with no metadata; a request that is sent again, or arrives late, carries older states, which
the broker leaves out; a topic that is created again begins with new epochs, under another topic id; epochs that
ZooKeeper's log does not show, because its tail could not be read. A controller that writes two leaders of one epoch is
convicted by ``leader-epoch-grows``, and not again for each broker that stores the second one.

Source: MetadataCache; KIP-320 (clients ignore older leader epochs); KIP-497 for partition epochs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from nemesis.checkers import znodes
from nemesis.checkers.breaks import metadata as breaks
from nemesis.checkers.explain import metadata as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

LeaderEpoch = tuple[str | None, str | None, int | None, int | None]
"""Topic, topic id, partition, leader epoch."""


class Metadata(EventListCheck):
    kinds = frozenset({Kind.PARTITION_METADATA, Kind.ZNODE})
    columns = (*znodes.COLUMNS, "topic_id", "incarnation", "partition_epoch")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (METADATA_NEVER_BACK,)

    def judge(self, rows: list[Row]) -> Results:
        named = _named_leaders(rows)
        last: dict[tuple[Any, ...], Row] = {}
        findings: list[Finding] = []
        checked = 0
        for row, event in rows:
            if event.kind != Kind.PARTITION_METADATA:
                continue
            checked += 1
            partition = (event.topic, event.topic_id, event.partition)
            cache = (*partition, event.process, event.incarnation)
            findings += _fall(last.get(cache), (row, event))
            findings += _another_leader(named[*partition, event.leader_epoch], (row, event))
            last[cache] = (row, event)
        return conclude(METADATA_NEVER_BACK, checked=checked, findings=findings)


def _named_leaders(rows: list[Row]) -> dict[LeaderEpoch, dict[int | None, Row]]:
    """Return for each leader epoch the first state with each leader, in ZooKeeper's order."""
    named: dict[LeaderEpoch, dict[int | None, Row]] = defaultdict(dict)
    for change in znodes.state_changes(rows):
        event = change.event
        key = (event.topic, event.topic_id, event.partition, event.leader_epoch)
        named[key].setdefault(event.leader, (change.row, event))
    return named


def _fall(before: Row | None, now: Row) -> list[Finding]:
    row, event = now
    if before is None or _epochs(event) >= _epochs(before[1]):
        return []
    tp = tp_name(event.topic, event.partition)
    then = before[1]
    sentence = (
        f"Broker {event.node} knew leader epoch {then.leader_epoch} and partition epoch {then.partition_epoch} of "
        f"{tp}, and then leader epoch {event.leader_epoch} and partition epoch {event.partition_epoch}."
    )
    return [finding(METADATA_NEVER_BACK.name, tp, sentence, before[0], row)]


def _another_leader(named: Mapping[int | None, Row], now: Row) -> list[Finding]:
    row, event = now
    if not named or event.leader in named:
        return []
    first_row, first = next(iter(named.values()))
    tp = tp_name(event.topic, event.partition)
    sentence = (
        f"The metadata of broker {event.node} name broker {event.leader} as leader of {tp} in leader epoch "
        f"{event.leader_epoch}, but in ZooKeeper its leader is broker {first.leader}."
    )
    return [finding(METADATA_NEVER_BACK.name, tp, sentence, first_row, row)]


def _epochs(event: Event) -> tuple[int, int]:
    return event.leader_epoch or 0, event.partition_epoch or 0


METADATA_NEVER_BACK: Final = Property(
    name="metadata-never-back",
    promise="What a broker knows of a partition's leader never goes back, and is what ZooKeeper names.",
    unit="partition states from UpdateMetadata requests",
    unknown="No broker reported what an UpdateMetadata request changed.",
    source="MetadataCache; KIP-320 (older leader epochs are ignored); KIP-497 for partition epochs.",
    check=Metadata,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
    recorded_since=4,
    reason=explain.metadata_never_back,
    breaks=breaks.METADATA_NEVER_BACK,
)

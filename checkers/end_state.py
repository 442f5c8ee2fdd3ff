"""What the harness saw at the end of a run: the ``end-state`` events, sorted.

ZooKeeper, the metadata of each broker and the logs on its disks are looked at once all is said to be done. Each that
answered is there, even if it told of nothing; one that did not answer is named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Kind

TopicPartition = tuple[str, int]

COLUMNS = ("source", "error", "node", "topic", "partition", "replicas", "isr")
ZOOKEEPER, METADATA = "zookeeper", "metadata"


@dataclass(slots=True)
class EndState:
    """Rows of end-state events by partition; ``metadata`` and ``logs`` by broker first."""

    partitions: dict[TopicPartition, Row] | None = None
    """What ZooKeeper has; None if nobody has looked."""
    metadata: dict[int, dict[TopicPartition, Row]] = field(default_factory=dict)
    logs: dict[int, dict[TopicPartition, Row]] = field(default_factory=dict)
    unseen: list[Row] = field(default_factory=list)
    """Those that could not be looked at."""

    def doubts(self, name: str) -> list[Finding]:
        """What property ``name`` must say of those that could not be looked at."""
        return [
            finding(
                name,
                event.source or "end-state",
                f"At the end {event.source} of {_whose(event.node)} could not be observed: {event.error}.",
                row,
                verdict=Verdict.UNKNOWN,
            )
            for row, event in self.unseen
        ]


def end_state(rows: Iterable[Row]) -> EndState:
    """Gather the end-state events among these rows."""
    state = EndState()
    for row, event in rows:
        if event.kind != Kind.END_STATE:
            continue
        if not succeeded(event):
            state.unseen.append((row, event))
            continue
        partitions = _partitions_of(state, event.source, event.node)
        if event.topic is not None and event.partition is not None:
            partitions[event.topic, event.partition] = (row, event)
    return state


def _partitions_of(
    state: EndState, source: str | None, node: int | None
) -> dict[TopicPartition, Row]:
    if source == ZOOKEEPER or node is None:
        if state.partitions is None:
            state.partitions = {}
        return state.partitions
    return (state.metadata if source == METADATA else state.logs).setdefault(node, {})


def _whose(node: int | None) -> str:
    return "the cluster" if node is None else f"broker-{node}"

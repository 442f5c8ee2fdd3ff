"""A controller sends the states that it has read from ZooKeeper, or written there.

**states-sent-as-written**: the state of a partition that a LeaderAndIsr or UpdateMetadata request names has the leader,
the leader epoch and the ISR that ZooKeeper has in the version of the state's znode that the request names as
partition epoch, of the same topic incarnation.
Smallest break: version 7 of the znode has leader 2 in leader epoch 4, and a broker answers UpdateMetadata that names
leader 1 in leader epoch 4 and partition epoch 7.

What it is good for: the controller never reads a state again that it has once read. If what it remembers differs from
ZooKeeper's, then each of its next decisions and requests starts from a state that does not exist.

What a correct cluster does and is not convicted for: a request that is late, or sent again, names an older version,
which is compared with that version; the state of a partition that is being deleted (leader −2) is in no znode; versions
that ZooKeeper's log does not show; a request without a topic id, of a topic that existed several times.

Limits: what was sent is seen where it is answered: by a broker that traces, and only if it changes something there.
Which replicas a request names is not compared.
Source: ControllerContext (partitionLeadershipInfo), ControllerBrokerRequestBatch of Kafka 3.9; KIP-497 for
partition epochs, which are the versions of the znodes.
"""

from __future__ import annotations

from typing import Final

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

_DELETED: Final = -2
_STOP: Final = "StopReplica"

Version = tuple[str | None, str | None, int | None, int | None]
"""Topic, topic id, partition, version of its state's znode."""


class StatesSent(EventListCheck):
    kinds = frozenset({Kind.CONTROL_REQUEST_ANSWERED, Kind.ZNODE})
    columns = (*znodes.COLUMNS, "topic_id", "zk_version", "api", "partition_epoch")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (STATES_SENT_AS_WRITTEN,)

    def judge(self, rows: list[Row]) -> Results:
        written = _written(rows)
        findings: list[Finding] = []
        checked = 0
        for row, event in rows:
            is_state = event.kind == Kind.CONTROL_REQUEST_ANSWERED and event.api != _STOP
            if not is_state or event.leader == _DELETED:
                continue
            checked += 1
            key = (event.topic, event.topic_id, event.partition, event.partition_epoch)
            znode = written.get(key)
            if znode is not None and not _is_same(event, znode[1]):
                findings.append(_finding(row, event, znode))
        return conclude(STATES_SENT_AS_WRITTEN, checked=checked, findings=findings)


def _written(rows: list[Row]) -> dict[Version, Row]:
    """Return the states that ZooKeeper had. Without a topic id one znode may have had a version several times."""
    written: dict[Version, Row] = {}
    for change in znodes.state_changes(rows):
        event = change.event
        version = 0 if event.zk_op == "create" else event.zk_version
        if event.topic_id is not None and version is not None:
            written[event.topic, event.topic_id, event.partition, version] = (change.row, event)
    return written


def _is_same(sent: Event, znode: Event) -> bool:
    is_same_isr = sent.isr is None or sorted(sent.isr) == sorted(znode.isr or ())
    return (sent.leader, sent.leader_epoch) == (znode.leader, znode.leader_epoch) and is_same_isr


def _finding(row: int, event: Event, znode: Row) -> Finding:
    tp = tp_name(event.topic, event.partition)
    sentence = (
        f"{event.api} named {_words(event)} as partition epoch {event.partition_epoch} of {tp}, but the znode of "
        f"that version has {_words(znode[1])}."
    )
    return finding(STATES_SENT_AS_WRITTEN.name, tp, sentence, znode[0], row)


def _words(state: Event) -> str:
    return f"leader {state.leader} in leader epoch {state.leader_epoch} and ISR {state.isr}"


STATES_SENT_AS_WRITTEN: Final = Property(
    name="states-sent-as-written",
    promise="The states that a controller sends to brokers are those that ZooKeeper has in these versions.",
    unit="states of partitions in control requests that brokers answered",
    unknown="No broker recorded what it answered to LeaderAndIsr or UpdateMetadata.",
    source="ControllerContext, ControllerBrokerRequestBatch; KIP-497 for partition epochs.",
    check=StatesSent,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
    recorded_since=5,
    reason=explain.states_sent_as_written,
    breaks=breaks.STATES_SENT_AS_WRITTEN,
)

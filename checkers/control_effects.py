"""What a broker answers to the controller without an error has happened on that broker.

* **control-requests-applied**: when a broker answers a control request for a partition with error NONE, its own traces
  show the effect, in the same process life:
  (a) LeaderAndIsr with leader epoch e: the last role that it took is that of leader or follower in an epoch of at
  least e, and it has not stopped the replica since; in epoch e itself it leads if the request names it, else it
  follows the leader that the request names.
  (b) StopReplica: it has no role any more that it took after its last stop; if the log was to be deleted, it has
  deleted the log that it had loaded.
  (c) UpdateMetadata: what its metadata cache holds is in a leader epoch and partition epoch at least as new.
  Smallest break: LeaderAndIsr makes broker 2 the leader in epoch 4; it answers NONE and still leads in epoch 3.

Why order may be trusted here: one process records the effect and the answer, one after the other, before the answer
leaves.

What a correct broker does and is not convicted for: it dies before it records the answer; it answers with an error (a
stale epoch of the controller or the broker, an old or a fenced leader epoch, an unknown topic id, a replica that is not
its own, a log or a log directory that failed); it has an epoch already, or a newer one from a request in between; it
stops a replica twice, or one that it does not have; it does not follow a leader that its metadata do not list as alive
(Kafka answers NONE then, and waits for the next LeaderAndIsr); it leaves out states of a topic incarnation of which an
earlier UpdateMetadata has announced the deletion.

Limits: that a deletion takes a partition out of the metadata is not traced (`convergence` compares the metadata at the
end). Equal epochs with another list of offline replicas are not compared.

Source: ReplicaManager (becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache) of Kafka 3.9; KAFKA-1647 for
leaders that are not alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.breaks import control_effects as breaks
from nemesis.checkers.explain import control_effects as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.brokers import ControlRequestAnswered
from nemesis.history.vocabulary.declaring import columns_of

TopicPartition = tuple[str | None, int | None]

_DELETED: Final = -2
"""The leader that UpdateMetadata names for a partition that is being deleted."""
_ROLES: Final = frozenset({Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER})
_EFFECTS: Final = frozenset({*_ROLES, Kind.LOG_LOADED, Kind.REPLICA_STOPPED})
_BEGUN: Final = "deleting"
"""The ``step`` of a replica whose log is not yet deleted."""


@dataclass(slots=True)
class Held:
    """What one process life of a broker holds, by its own traces."""

    live: frozenset[int] = frozenset()
    """The brokers that its metadata list as alive."""
    replicas: dict[TopicPartition, Row] = field(default_factory=dict)
    """What it last did with each replica."""
    metadata: dict[TopicPartition, Row] = field(default_factory=dict)
    deleted: set[tuple[str | None, int | None]] = field(default_factory=set)
    """Topic ids and partitions whose deletion was announced."""

    def observe(self, row: int, event: Event) -> None:
        key = (event.topic, event.partition)
        if event.kind == Kind.METADATA_UPDATED:
            self.live = frozenset(event.live or ())
        elif event.kind == Kind.PARTITION_METADATA:
            self.metadata[key] = (row, event)
        elif event.kind in _EFFECTS and event.step != _BEGUN:
            self.replicas[key] = (row, event)

    def forget(self, event: Event) -> None:
        """Take over that a partition is being deleted."""
        if event.topic_id is not None:
            self.deleted.add((event.topic_id, event.partition))
        known = self.metadata.get((event.topic, event.partition))
        if known is not None and _is_one_topic(known[1], event):
            del self.metadata[event.topic, event.partition]


class ControlEffects(EventListCheck):
    kinds = frozenset(
        {
            Kind.CONTROL_REQUEST_ANSWERED,
            Kind.METADATA_UPDATED,
            Kind.PARTITION_METADATA,
            *_EFFECTS,
        }
    )
    columns = (*columns_of(ControlRequestAnswered), "live")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CONTROL_REQUESTS_APPLIED,)

    def judge(self, rows: list[Row]) -> Results:
        held_by: dict[tuple[str, int | None], Held] = {}
        findings: list[Finding] = []
        checked = 0
        for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
            held = held_by.setdefault((event.process, event.incarnation), Held())
            if event.kind != Kind.CONTROL_REQUEST_ANSWERED:
                held.observe(row, event)
            elif succeeded(event):
                checked += 1
                findings += _judge_answer(row, event, held)
        return conclude(CONTROL_REQUESTS_APPLIED, checked=checked, findings=findings)


def _judge_answer(row: int, event: Event, held: Held) -> Iterable[Finding]:
    if event.api == "LeaderAndIsr":
        return _role_missing(row, event, held)
    if event.api == "StopReplica":
        return _still_there(row, event, held)
    if event.leader == _DELETED:
        held.forget(event)
        return []
    return _metadata_missing(row, event, held)


def _role_missing(row: int, event: Event, held: Held) -> list[Finding]:
    """Part (a)."""
    last = held.replicas.get((event.topic, event.partition))
    is_led_here = event.leader == event.node
    if (last is not None and _is_role(last[1], event)) or (
        not is_led_here and event.leader not in held.live
    ):
        return []
    role = "lead" if is_led_here else f"follow broker {event.leader}"
    return [
        _finding(row, event, last, f"that it should {role} in leader epoch {event.leader_epoch}")
    ]


def _is_role(last: Event, asked: Event) -> bool:
    """Whether the last effect is the role that was asked for, or one in a newer epoch."""
    had, wanted = last.leader_epoch, asked.leader_epoch
    if last.kind not in _ROLES or had is None or wanted is None or not _is_one_topic(last, asked):
        return False
    if had > wanted:
        return True
    leader = asked.node if last.kind == Kind.BECOME_LEADER else last.leader
    return had == wanted and leader == asked.leader


def _still_there(row: int, event: Event, held: Held) -> list[Finding]:
    """Part (b)."""
    last = held.replicas.get((event.topic, event.partition))
    if last is None:
        return []
    is_deletion = event.step == "delete"
    is_gone = last[1].step == "delete"
    is_idle = last[1].kind not in _ROLES
    if is_gone or (is_idle and not is_deletion):
        return []
    asked = "stop and delete its replica" if is_deletion else "stop its replica"
    return [_finding(row, event, last, f"that it should {asked}")]


def _metadata_missing(row: int, event: Event, held: Held) -> list[Finding]:
    """Part (c)."""
    known = held.metadata.get((event.topic, event.partition))
    is_deleted = (event.topic_id, event.partition) in held.deleted
    if is_deleted or (
        known is not None and _is_one_topic(known[1], event) and _epochs(known[1]) >= _epochs(event)
    ):
        return []
    named = f"leader epoch {event.leader_epoch} and partition epoch {event.partition_epoch}"
    return [_finding(row, event, known, f"with {named}")]


def _finding(row: int, event: Event, last: Row | None, asked: str) -> Finding:
    tp = tp_name(event.topic, event.partition)
    sentence = (
        f"Broker {event.node} answered NONE to {event.api} for {tp} {asked}, and had not done it."
    )
    rows = (row,) if last is None else (last[0], row)
    return finding(CONTROL_REQUESTS_APPLIED.name, tp, sentence, *rows)


def _is_one_topic(a: Event, b: Event) -> bool:
    """Whether both can be about one topic incarnation; older versions of requests have no topic id."""
    return None in (a.topic_id, b.topic_id) or a.topic_id == b.topic_id


def _epochs(event: Event) -> tuple[int, int]:
    return event.leader_epoch or 0, event.partition_epoch or 0


CONTROL_REQUESTS_APPLIED: Final = Property(
    name="control-requests-applied",
    promise="What a broker answers to the controller without an error has happened on that broker.",
    unit="answers for a partition",
    unknown="No broker recorded what it answered to control requests.",
    source="ReplicaManager (becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache); KAFKA-1647.",
    check=ControlEffects,
    decided_from=frozenset({EventSource.TRACES}),
    recorded_since=5,
    reason=explain.control_requests_applied,
    breaks=breaks.CONTROL_REQUESTS_APPLIED,
)

"""What a controller does about brokers that are gone: no partition waits for a dead leader.

* **dead-brokers-replaced**: when a controller has finished its failover or the handling of a change of brokers, as its
  traces say, it lists the live brokers, and in ZooKeeper
  (a) no partition has a leader that is not among them; a partition without an eligible replica has leader −1;
  (b) no ISR of several members holds a broker that is not among them;
  (c) the replicas of a broker that was alive when the same controller looked last are no longer Online or New.
  When it has answered that a broker may shut down, the broker (d) leads no more partitions of several replicas than
  the answer states, and (e) is in no ISR of several members beside another leader.
  Smallest break: broker 1 leads t-0; a failover ends and only broker 2 is alive.

The idea: a controller's events and ZooKeeper's transactions have no common clock, but what a controller has committed
has a zxid that its events carry. The greatest zxid that its process has reported before it reports the end is a moment
in ZooKeeper's order that lies before that end; the states as of that zxid are judged.

What a correct controller does and is not convicted for: a broker that died after the controller had looked; the last
member of an ISR, which stays; a reassignment that leaves a partition one replica, before the broker that leads it shuts
down; a topic that is being deleted or was deleted at some time, whose partitions get no leaders; members of an ISR that
a leader wrote itself, as before IBP 2.7 (the dead broker may have joined when it was already dead, and the next event
tells the controller), or a dead member that the leader's next write has removed, perhaps before the controller read the
state; replicas of a dead broker that are created while it is dead, which are Online in Kafka.

Source: KafkaController (onControllerFailover, onBrokerFailure, doControlledShutdown), ReplicaStateMachine; KAFKA-3143.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.breaks import broker_failures as breaks
from nemesis.checkers.explain import broker_failures as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.znodes import StateChange
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_NO_LEADER: Final = -1
_DELETIONS: Final = "/admin/delete_topics/"
_LISTS: Final = frozenset({Kind.CONTROLLER_FAILOVER, Kind.BROKER_CHANGE_HANDLED})
_COMMITS: Final = frozenset({Kind.LEADER_ELECTED, Kind.ALTER_PARTITION_HANDLED})
_ALIVE: Final = frozenset({"New", "Online"})
TopicPartition = tuple[str | None, int | None]
Replica = tuple[str | None, str | None, int | None, int | None]


@dataclass(slots=True)
class States:
    """The states of one partition in ZooKeeper's order."""

    zxids: list[int] = field(default_factory=list)
    changes: list[StateChange] = field(default_factory=list)

    def as_of(self, zxid: int) -> StateChange | None:
        """Return the state that was current after this transaction."""
        index = bisect_right(self.zxids, zxid)
        return self.changes[index - 1] if index else None

    def lifetime(self, change: StateChange) -> tuple[int, float]:
        """Return the zxids between which a state was current: its own, and that of the next state."""
        zxid = change.event.zxid or 0
        index = bisect_right(self.zxids, zxid)
        return zxid, self.zxids[index] if index < len(self.zxids) else inf

    def may_be_replaced_by_leader(
        self, change: StateChange, committed: Collection[tuple[TopicPartition, int]]
    ) -> bool:
        """Whether the leader itself wrote the next ISR: a controller that read that one had nothing to remove.

        ``committed`` are the states that any controller has committed at any time, with their zxids.
        """
        index = bisect_right(self.zxids, change.event.zxid or 0)
        if index >= len(self.changes):
            return False
        state, following = change.event, self.changes[index].event
        key = (following.topic, following.partition), following.zxid or 0
        is_same_term = (state.leader_epoch, state.controller_epoch) == (
            following.leader_epoch,
            following.controller_epoch,
        )
        return is_same_term and key not in committed


@dataclass(slots=True)
class Term:
    """What one controller is known to have done in its term so far."""

    elected: Event
    written: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """The states that it has committed, with their zxids."""
    live: frozenset[int] | None = None
    """The brokers that were alive when it looked last."""
    replicas: dict[Replica, Row] = field(default_factory=dict)
    """The last transition of each replica."""


class BrokerFailures(EventListCheck):
    kinds = frozenset(
        {
            *_LISTS,
            Kind.CONTROLLED_SHUTDOWN_HANDLED,
            Kind.CONTROLLER_ELECTED,
            *_COMMITS,
            Kind.TRANSITION,
            Kind.ZNODE,
        }
    )
    columns = (
        *znodes.COLUMNS,
        "topic_id",
        "incarnation",
        "live",
        "peer",
        "count",
        "error",
        "replica",
        "from_state",
        "to_state",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (DEAD_BROKERS_REPLACED,)

    def judge(self, rows: list[Row]) -> Results:
        states, deleted, alone = _states(rows), _deleted_topics(rows), _left_alone(rows)
        committed = {
            ((event.topic, event.partition), event.zxid or 0)
            for _, event in rows
            if event.kind in _COMMITS
        }
        findings: list[Finding] = []
        checked = 0
        for row, event, zxid, term in _ends(rows):
            checked += event.live is not None or event.kind == Kind.CONTROLLED_SHUTDOWN_HANDLED
            known = {
                key: state
                for key, of_partition in states.items()
                if key[0] not in deleted and (state := of_partition.as_of(zxid)) is not None
            }
            own = {
                key
                for key, state in known.items()
                if _is_the_controllers(state, term)
                and not states[key].may_be_replaced_by_leader(state, committed)
            }
            if event.kind == Kind.CONTROLLED_SHUTDOWN_HANDLED:
                several = {
                    key: state
                    for key, state in known.items()
                    if _has_several(state, states[key].lifetime(state), alone[key])
                }
                findings += _still_needed(row, event, several, own)
            elif event.live is not None:
                live = frozenset(event.live)
                findings += _dead_members(row, live, term, known, own)
                findings += _dead_replicas(row, live, term, deleted)
                term.live = live
        return conclude(DEAD_BROKERS_REPLACED, checked=checked, findings=findings)


def _states(rows: list[Row]) -> dict[TopicPartition, States]:
    states: dict[TopicPartition, States] = defaultdict(States)
    for change in znodes.state_changes(rows):
        of_partition = states[change.event.topic, change.event.partition]
        of_partition.zxids.append(change.event.zxid or 0)
        of_partition.changes.append(change)
    return states


def _deleted_topics(rows: list[Row]) -> frozenset[str]:
    """The names of topics whose deletion was ever requested, or that are gone."""
    paths = [(event.path or "", event.zk_op) for _, event in rows if event.kind == Kind.ZNODE]
    asked = {path.removeprefix(_DELETIONS) for path, _ in paths if path.startswith(_DELETIONS)}
    gone = {path.removeprefix(znodes.TOPICS) for path, did in paths if did == "delete"}
    return frozenset(asked | gone)


def _left_alone(rows: list[Row]) -> Mapping[TopicPartition, list[int]]:
    """The zxids at which each partition was assigned one replica only."""
    alone: dict[TopicPartition, list[int]] = defaultdict(list)
    for _, event in znodes.changes(rows):
        if event.topic is None or event.path != f"{znodes.TOPICS}{event.topic}":
            continue
        for partition, replicas in znodes.assignment(event).items():
            if len(replicas) == 1:
                alone[event.topic, partition].append(event.zxid or 0)
    return alone


def _has_several(state: StateChange, lifetime: tuple[int, float], alone: Sequence[int]) -> bool:
    """Whether the partition had several replicas when the state was written, and as long as it was current.

    The controller takes the last of them away after it has written the state, and its events do not have that zxid.
    """
    since, until = lifetime
    is_left = any(since < zxid < until for zxid in alone)
    return state.assigned is not None and len(state.assigned) > 1 and not is_left


def _ends(rows: list[Row]) -> Iterator[tuple[int, Event, int, Term]]:
    """Yield each event that ends a controller's work: its row, the event, a zxid that lies before it, its term."""
    committed: dict[tuple[str, int | None], int] = {}
    terms: dict[tuple[str, int | None], Term] = {}
    traced = [item for item in rows if item[1].kind != Kind.ZNODE]
    for row, event in sorted(traced, key=lambda item: (item[1].time, item[1].process, item[1].seq)):
        process = (event.process, event.incarnation)
        if event.zxid is not None:
            committed[process] = max(event.zxid, committed.get(process, 0))
        if event.kind == Kind.CONTROLLER_ELECTED:
            terms[process] = Term(event)
        term = terms.get(process)
        if term is None:
            continue
        if event.kind in _COMMITS and event.zxid is not None:
            term.written.add(((event.topic, event.partition), event.zxid))
        if event.kind == Kind.TRANSITION and event.replica is not None and succeeded(event):
            thing = (event.topic, event.topic_id, event.partition, event.replica)
            term.replicas[thing] = (row, event)
        elif event.controller_epoch == term.elected.controller_epoch and (
            event.kind in _LISTS
            or (event.kind == Kind.CONTROLLED_SHUTDOWN_HANDLED and succeeded(event))
        ):
            yield row, event, committed[process], term


def _is_the_controllers(state: StateChange, term: Term) -> bool:
    """Whether the controller has written the state, or found it at its election.

    The session does not tell: the controller's broker may lead the partition, and write its ISR in the same session.
    """
    event = state.event
    is_older = (event.zxid or 0) <= (term.elected.zxid or 0)
    return is_older or ((event.topic, event.partition), event.zxid or 0) in term.written


def _members(state: StateChange) -> list[int]:
    """The assigned members of an ISR of several; those of which it is unknown whether they are assigned, too."""
    isr = state.event.isr or []
    return [
        member
        for member in isr
        if len(isr) > 1 and (state.assigned is None or member in state.assigned)
    ]


def _dead_members(
    row: int,
    live: frozenset[int],
    term: Term,
    known: dict[TopicPartition, StateChange],
    own: Collection[TopicPartition],
) -> list[Finding]:
    """Parts (a) and (b); ``own`` are the partitions whose members the controller has to remove."""
    findings = []
    for key, state in known.items():
        tp, leader = tp_name(*key), state.event.leader
        when = (
            f"when the controller of epoch {term.elected.controller_epoch} had handled a change of brokers, with "
            f"{sorted(live)} alive"
        )
        dead = [member for member in _members(state) if member not in live]
        if leader != _NO_LEADER and leader not in live:
            sentence = f"Broker {leader} still led {tp} {when}."
        elif dead and key in own:
            sentence = f"Broker {dead[0]} was still in the ISR {state.event.isr} of {tp} {when}."
        else:
            continue
        findings.append(finding(DEAD_BROKERS_REPLACED.name, tp, sentence, state.row, row))
    return findings


def _dead_replicas(
    row: int, live: frozenset[int], term: Term, deleted: frozenset[str]
) -> list[Finding]:
    """Part (c)."""
    gone = frozenset() if term.live is None else term.live - live
    findings = []
    for (topic, _, partition, broker), (last_row, last) in term.replicas.items():
        if broker in gone and topic not in deleted and last.to_state in _ALIVE:
            tp = tp_name(topic, partition)
            sentence = (
                f"The replica of {tp} on broker {broker} was still {last.to_state} when the controller of epoch "
                f"{term.elected.controller_epoch} had handled the death of this broker."
            )
            findings.append(finding(DEAD_BROKERS_REPLACED.name, tp, sentence, last_row, row))
    return findings


def _still_needed(
    row: int,
    event: Event,
    several: dict[TopicPartition, StateChange],
    own: Collection[TopicPartition],
) -> list[Finding]:
    """Parts (d) and (e), of partitions of several replicas."""
    led = [(key, state) for key, state in several.items() if state.event.leader == event.peer]
    findings = []
    if event.count is not None and len(led) > event.count:
        key, state = led[-1]
        sentence = (
            f"The controller answered broker {event.peer} that it leads {event.count} partitions when it led "
            f"{len(led)}, {tp_name(*key)} among them."
        )
        findings.append(
            finding(DEAD_BROKERS_REPLACED.name, tp_name(*key), sentence, state.row, row)
        )
    for key, state in several.items():
        is_follower = event.peer in _members(state) and state.event.leader not in (
            _NO_LEADER,
            event.peer,
        )
        if is_follower and key in own:
            tp = tp_name(*key)
            sentence = (
                f"Broker {event.peer} was still in the ISR {state.event.isr} of {tp} when the controller answered that "
                "it may shut down."
            )
            findings.append(finding(DEAD_BROKERS_REPLACED.name, tp, sentence, state.row, row))
    return findings


DEAD_BROKERS_REPLACED: Final = Property(
    name="dead-brokers-replaced",
    promise="When a controller has handled that brokers are gone or leave, no partition depends on them.",
    unit="failovers, changes of brokers and shutdowns",
    unknown="No controller reported that it had finished a failover or the handling of a change of brokers.",
    source="KafkaController (onControllerFailover, onBrokerFailure, doControlledShutdown); KAFKA-3143.",
    check=BrokerFailures,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
    recorded_since=4,
    reason=explain.dead_brokers_replaced,
    breaks=breaks.DEAD_BROKERS_REPLACED,
)

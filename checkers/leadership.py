"""Leader epochs only grow, one leader per epoch, and leaders come from the in-sync replicas.

* **leader-epoch-grows**: per partition, in ZooKeeper's order, ``leader_epoch`` never falls and every change of
  leader raises it. The view of one replica (one process life) never falls either.
  Smallest break: leader 1 in epoch 4, then leader 2 in epoch 4.
* **one-leader-per-epoch**: per (partition, leader epoch) at most one broker became leader, appended as leader or
  acknowledged a produce, and it is the one that ZooKeeper names for that epoch. An epoch that ZooKeeper never named
  has no leader; one above all that it named may stand in the log's unread tail (``unknown``).
  Smallest break: brokers 1 and 2 both append as leader in epoch 4.
* **leader-from-isr**: an elected leader was in the ISR of the committed state that its election replaces, and alive
  in the controller's own view, unless the election was unclean and permitted (``unclean``) at some time between what
  its controller had certainly seen (``read_after``) and the commit; if nothing is known of permissions, an unclean
  election is ``unknown``. The first leader is an assigned replica. In every committed state the ISR is not empty, is
  out of the replicas assigned at that zxid and holds the leader, unless there is none (−1). An election that no
  controller has traced may have been an unclean one: a controller that ends before ZooKeeper answers traces nothing.
  With KRaft (KIP-966) the eligible leader replicas of that state count as its ISR does, and the last known ones where a
  state has neither; the ISR may be empty while nothing leads. A last known leader is also elected by the record that
  takes away the last eligible replica, which has come back from an unclean stop; the record then asks the leader to
  recover. There one record takes into the ISR whom the leader proposed, completes the reassignment that waited for it,
  and elects another leader out of the new ISR if the move removes the old one.
  Smallest break: ISR [1, 2], then leader 3.

What a correct cluster does and is not convicted for: the same leader may be elected again; a removal from the ISR
and a new epoch without an election leave the leader as it is, dead or alive (but may not name another one); a broker
that a controller believed alive may be dead; followers adopt an epoch late; one broker may become leader twice in one
epoch (a repeated LeaderAndIsr, a restart). A topic that was created twice is two topics: its brokers' events are told
apart by topic id, ZooKeeper's by the deletion of the znode in between. A controller of Kafka that cancels a
reassignment takes what that was adding out of the assignment first, and then out of the ISR, one broker after the
other: where brokers do not trace, a member of the ISR may stay there after it has left the replicas. The reference
does it the other way round.

Source: PartitionStateMachine, Partition.makeLeader; KIP-101 and KIP-320 for what the epochs carry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from nemesis.checkers import unclean, znodes
from nemesis.checkers.breaks import leaders as breaks
from nemesis.checkers.explain import leaders
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.read_after import Readings
from nemesis.checkers.unclean import UNCLEAN, Election, Permission
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

NO_LEADER = -1
FEW_LEADERS = 8
"""So many are found one after the other, more by sorting."""
KEEPS_LEADER = frozenset({"remove-from-isr", "no-op"})
"""The strategies of a mere removal from the ISR and of a mere new epoch: nobody is elected by them."""

_VIEWS = frozenset({Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER})


class LeaderEpochGrows(EventListCheck):
    kinds = frozenset({Kind.ZNODE, Kind.REPLICA_STOPPED, *_VIEWS})
    columns = (*znodes.COLUMNS, "topic_id", "incarnation", "step")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEADER_EPOCH_GROWS,)

    def judge(self, rows: list[Row]) -> Results:
        findings, checked = [], 0
        for change in znodes.state_changes(rows):
            checked += 1
            if change.previous is not None:
                findings += self._committed(change)
        views, judged_views = self._views(rows)
        return conclude(
            LEADER_EPOCH_GROWS, checked=checked + judged_views, findings=findings + views
        )

    def _committed(self, change: znodes.StateChange) -> list[Finding]:
        now, before = change.event, change.previous
        assert before is not None
        assert now.leader_epoch is not None
        assert before.leader_epoch is not None
        tp = tp_name(now.topic, now.partition)
        if now.leader_epoch < before.leader_epoch:
            sentence = (
                f"The leader epoch of {tp} fell from {before.leader_epoch} to {now.leader_epoch} "
                f"in {znodes.authority(now)}."
            )
        elif now.leader != before.leader and now.leader_epoch == before.leader_epoch:
            sentence = (
                f"The leader of {tp} changed from {_named(before)} to {_named(now)}, but leader epoch "
                f"{now.leader_epoch} stayed."
            )
        else:
            return []
        return [finding(self.name, tp, sentence, change.previous_row, change.row)]

    def _views(self, rows: list[Row]) -> tuple[list[Finding], int]:
        """What each replica was told, per process life."""
        highest: dict[tuple[Any, ...], tuple[int, int]] = {}
        findings: list[Finding] = []
        checked = 0
        for row, event in rows:
            key = (event.topic, event.topic_id, event.partition, event.process, event.incarnation)
            if event.kind == Kind.REPLICA_STOPPED and event.step == "delete":
                highest.pop(key, None)
            if event.kind not in _VIEWS or event.leader_epoch is None:
                continue
            checked += 1
            top, top_row = highest.get(key, (event.leader_epoch, row))
            if event.leader_epoch < top:
                tp = tp_name(event.topic, event.partition)
                sentence = (
                    f"Broker {event.node} went back to leader epoch {event.leader_epoch} of {tp} after it had adopted "
                    f"epoch {top}."
                )
                findings.append(finding(self.name, tp, sentence, top_row, row))
            if event.leader_epoch > top or key not in highest:
                highest[key] = (event.leader_epoch, row)
        return findings, checked


TopicKey = tuple[str | None, str | None, int | None]
Leaders = dict[TopicKey, dict[tuple[int, int], int]]
"""Per partition: (leader epoch, broker) → row of the first event in which it acted as leader."""


@dataclass(slots=True)
class NamedLeaders:
    """Whom ZooKeeper names as leader of one partition of one topic incarnation."""

    leaders: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """Leader epoch → (row of its first state, leader); the leader is ``None`` where the states disagree."""
    is_complete: bool = True
    """Whether no write of the state is missing: it was created, and its versions are without a gap."""
    version: int | None = None
    authority: str = "ZooKeeper"
    """The log that these states are from: ZooKeeper's, or the metadata log of a KRaft quorum."""


def named_leaders(rows: list[Row]) -> dict[TopicKey, NamedLeaders]:
    """Return what the state znodes say, in ZooKeeper's order."""
    named: dict[TopicKey, NamedLeaders] = {}
    for change in znodes.state_changes(rows):
        event = change.event
        assert event.leader_epoch is not None
        key = (event.topic, event.topic_id, event.partition)
        known = named.setdefault(key, NamedLeaders(authority=znodes.authority(event)))
        expected = 0 if known.version is None else known.version + 1
        known.is_complete &= event.zk_version == expected
        known.version = event.zk_version
        row, leader = known.leaders.get(event.leader_epoch, (change.row, event.leader))
        known.leaders[event.leader_epoch] = (row, leader if leader == event.leader else None)
    return named


def _first_acts(part: Segment) -> tuple[int, dict[tuple[int, int], int]]:
    """Return how often brokers acted as leaders, and (leader epoch, broker) → the first row of each."""
    epochs, nodes = part.numbers("leader_epoch"), part.numbers("node")
    is_act = part.is_word("role", {"leader"}) & ~part.is_kind(Kind.HIGH_WATERMARK)
    is_act |= part.is_kind(Kind.BECOME_LEADER, Kind.PRODUCE_ACKNOWLEDGED)
    acts = int(np.count_nonzero(is_act))
    firsts = _firsts(is_act, epochs, nodes)
    rows = part.take(firsts).rows
    keys = zip(epochs[firsts].tolist(), nodes[firsts].tolist(), strict=True)
    return acts, dict(zip(keys, rows.tolist(), strict=True))


def _firsts(is_act: Mask, epochs: Numbers, nodes: Numbers) -> Numbers:
    """The places of the first act of each epoch and broker, in order. Mostly one broker acts for a long while."""
    firsts: list[int] = []
    left = is_act.copy()
    while left.any():
        if len(firsts) == FEW_LEADERS:
            others = np.flatnonzero(left)
            pairs = np.stack([epochs[others], nodes[others]])
            indices = np.unique(pairs, axis=1, return_index=True)[1]
            return np.concatenate([firsts, others[np.sort(indices)]])
        index = int(left.argmax())
        firsts.append(index)
        left &= (nodes != nodes[index]) | (epochs != epochs[index])
    return np.array(firsts, dtype=np.int64)


class OneLeaderPerEpoch(Fold[tuple[int, Leaders, list[Row]]]):
    """The summary holds (events seen, who acted as leader when, ZooKeeper's rows).

    High watermarks are of no use to it: to pass over them costs less than to pick the rows around them.
    """

    kinds = frozenset(
        {
            Kind.BECOME_LEADER,
            Kind.APPEND,
            Kind.PRODUCE_ACKNOWLEDGED,
            Kind.ZNODE,
            Kind.HIGH_WATERMARK,
        }
    )
    columns = (*znodes.COLUMNS, "topic_id", "zk_version", "role")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ONE_LEADER_PER_EPOCH,)

    def reduce(self, segment: Segment) -> tuple[int, Leaders, list[Row]]:
        committed = list(segment.only({Kind.ZNODE}).events(*self.columns))
        segment.columns.fetch(("role", "node", "leader_epoch"))
        count, leaders = 0, {}
        for key, part in segment.by("topic", "topic_id", "partition"):
            acts, first = _first_acts(part)
            if acts:
                count += acts
                leaders[key] = first
        in_order = sorted(leaders.items(), key=lambda item: min(item[1].values()))
        return count, dict(in_order), committed

    def combine(
        self, a: tuple[int, Leaders, list[Row]], b: tuple[int, Leaders, list[Row]]
    ) -> tuple[int, Leaders, list[Row]]:
        leaders = dict(a[1])
        for key, acts in b[1].items():
            leaders[key] = {**acts, **leaders.get(key, {})}
        return a[0] + b[0], leaders, a[2] + b[2]

    def finish(self, summary: tuple[int, Leaders, list[Row]]) -> Results:
        checked, leaders, committed = summary
        named = named_leaders(committed)
        findings: list[Finding] = []
        for key, acts in leaders.items():
            tp = tp_name(key[0], key[2])
            first: dict[int, tuple[int, int]] = {}
            for (epoch, node), row in sorted(acts.items(), key=lambda item: item[1]):
                if epoch in first:
                    other_row, other = first[epoch]
                    sentence = f"Brokers {other} and {node} both acted as leader of {tp} in leader epoch {epoch}."
                    findings.append(finding(self.name, tp, sentence, other_row, row))
                elif key in named:
                    findings += self._not_named(named[key], tp, epoch, node, row)
                first.setdefault(epoch, (row, node))
        return conclude(ONE_LEADER_PER_EPOCH, checked=checked, findings=findings)

    def _not_named(
        self, named: NamedLeaders, tp: str, epoch: int, node: int, row: int
    ) -> list[Finding]:
        """Return the contradiction between the decided states and a broker that led in this epoch, if any."""
        verdict, proof = Verdict.INVALID, None
        if epoch in named.leaders:
            proof, leader = named.leaders[epoch]
            if leader in (node, None):
                return []
            why = (
                f"in which {named.authority} names no leader"
                if leader == NO_LEADER
                else f"which {named.authority} gave to broker {leader}"
            )
        elif epoch < 0:
            return []
        else:
            why = f"which {named.authority} does not show"
            if epoch > max(named.leaders) or not named.is_complete:
                verdict = Verdict.UNKNOWN
        sentence = f"Broker {node} acted as leader of {tp} in leader epoch {epoch}, {why}."
        return [finding(self.name, tp, sentence, proof, row, verdict=verdict)]


class LeaderFromIsr(EventListCheck):
    kinds = frozenset({Kind.LEADER_ELECTED, *unclean.KINDS})
    columns = (*znodes.COLUMNS, *unclean.COLUMNS, "replicas", "live")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEADER_FROM_ISR,)

    def judge(self, rows: list[Row]) -> Results:
        elections = {
            (event.zxid, event.topic, event.partition): (row, event)
            for row, event in rows
            if event.kind == Kind.LEADER_ELECTED
        }
        permissions, readings = unclean.permissions_in(rows), Readings(rows)
        is_traced = any(event.kind in unclean.TRACED for _, event in rows)
        findings, checked = [], 0
        for change in znodes.state_changes(rows):
            checked += 1
            event = change.event
            traced = elections.get((event.zxid, event.topic, event.partition))
            election = traced[1] if traced else None
            leaving = frozenset() if is_traced else _members(change.previous)
            sentence, verdict = _wrong_shape(change, election, leaving), Verdict.INVALID
            if sentence is None and change.changes_leadership:
                permitted = Permission.FORBIDDEN
                if _is_unclean(event, election) or (_is_outsider(change) and election is None):
                    permitted = permissions.of(
                        event.topic,
                        event.partition,
                        Election(event.zxid or 0)
                        if election is None
                        else unclean.election_of(election),
                        since=readings.after(change),
                    )
                if not permitted.excuses:
                    sentence = _wrong_leader(change, election)
                elif permitted is Permission.UNTOLD and _is_outsider(change):
                    sentence, verdict = _doubtful(event), Verdict.UNKNOWN
            if sentence is not None:
                tp = tp_name(event.topic, event.partition)
                traced_row = traced[0] if traced else None
                proofs = (change.previous_row, change.row, traced_row)
                findings.append(
                    finding(self.name, tp, f"{tp}: {sentence}", *proofs, verdict=verdict)
                )
        return conclude(LEADER_FROM_ISR, checked=checked, findings=findings)


def _wrong_shape(
    change: znodes.StateChange, election: Event | None, leaving: frozenset[int]
) -> str | None:
    """What is wrong with a committed state in itself, given its partition's replicas.

    ``leaving`` are brokers that may still be in the ISR after they have left the replicas.
    """
    event, assigned = change.event, change.assigned
    if event.isr is None:
        return None
    if not event.isr and (event.leader != NO_LEADER or _eligible(event) is None):
        return "a state with an empty ISR was committed."
    if event.leader != NO_LEADER and event.leader not in event.isr:
        return f"a state was committed whose leader {event.leader} is not in its ISR {_list(event.isr)}."
    if assigned is None and election is not None and election.replicas is not None:
        assigned = frozenset(election.replicas)
    if assigned is not None and (strangers := sorted(set(event.isr) - assigned - leaving)):
        return f"the ISR {_list(event.isr)} has brokers that are not replicas of it: {_list(strangers)}."
    return None


def _members(state: Event | None) -> frozenset[int]:
    """The ISR of a state; nothing of one that is not known."""
    return frozenset() if state is None else frozenset(state.isr or ())


def _wrong_leader(change: znodes.StateChange, election: Event | None) -> str | None:
    """What is wrong with a change of leader or leader epoch, given the controller's trace of it."""
    event, before = change.event, change.previous
    if event.leader == NO_LEADER:
        return None
    if before is None:
        if election is not None and election.replicas and event.leader not in election.replicas:
            return f"the first leader {event.leader} is none of the replicas {_list(election.replicas)}."
    elif _is_outsider(change):
        return f"broker {event.leader} was elected leader though the ISR was {_list(before.isr)}."
    elif (
        election is not None and election.strategy in KEEPS_LEADER and event.leader != before.leader
    ):
        changed = f"from {before.leader} to {event.leader}"
        return f"no leader was elected ({election.strategy}), but the leader changed {changed}."
    if (
        election is not None
        and election.live is not None
        and election.strategy not in KEEPS_LEADER
        and event.leader not in election.live
    ):
        return (
            f"broker {event.leader} was elected leader though the controller saw only {_list(election.live)} "
            "alive."
        )
    return None


def _is_outsider(change: znodes.StateChange) -> bool:
    """Whether the new leader was not in the ISR of the state that its election replaced."""
    event, before = change.event, change.previous
    return (
        before is not None
        and before.isr is not None
        and event.leader != NO_LEADER
        and event.leader not in before.isr
        and event.leader not in (_eligible(before) or ())
        and not _replaces_removed_leader(change)
        and not _is_last_known(change)
    )


def _replaces_removed_leader(change: znodes.StateChange) -> bool:
    """Whether the state completes a reassignment that removes its old leader, with a new leader out of its own ISR."""
    event, before = change.event, change.previous
    if before is None or change.assigned is None or before.leader in change.assigned:
        return False
    return _data(event).get(unclean.ENDS_REASSIGNMENT) is True and event.leader in (event.isr or ())


def _is_last_known(change: znodes.StateChange) -> bool:
    """Whether the state takes away the last eligible replicas, and its leader is the last known one (KIP-966)."""
    event, before = change.event, change.previous
    if before is None or before.isr or event.isr != [event.leader]:
        return False
    return (
        event.leader in (_data(before).get("last_known_elr") or ())
        and _data(event).get(unclean.ELIGIBLE) == []
        and _must_recover(event)
    )


def _eligible(state: Event) -> frozenset[int] | None:
    """Return the brokers that may lead next though they are not in the ISR (KIP-966); None of a state of ZooKeeper."""
    data = _data(state)
    if not isinstance(eligible := data.get(unclean.ELIGIBLE), list):
        return None
    return frozenset(eligible if eligible or state.isr else data.get("last_known_elr") or ())


def _data(state: Event) -> dict[str, Any]:
    """Return the state as it was written; nothing of one that cannot be read."""
    try:
        data: Any = msgspec.json.decode(state.data or "null")
    except msgspec.DecodeError:
        return {}
    return data if isinstance(data, dict) else {}


def _doubtful(event: Event) -> str:
    return (
        f"broker {event.leader} was elected leader uncleanly, and the history does not contain whether the "
        "configuration permits that."
    )


def _is_unclean(event: Event, election: Event | None) -> bool:
    """Whether the election was an unclean one: the trace says so, or the state asks the leader to recover."""
    if election is not None and election.strategy == UNCLEAN:
        return True
    return _must_recover(event)


def _must_recover(state: Event) -> bool:
    """Whether the state asks its leader to recover, because it may lack what was committed."""
    return _data(state).get(unclean.RECOVERY) == unclean.MUST_RECOVER


def _named(state: Event) -> str:
    return "no leader" if state.leader in (None, NO_LEADER) else f"broker {state.leader}"


def _list(brokers: list[int] | None) -> str:
    return "[" + ", ".join(str(broker) for broker in brokers or ()) + "]"


LEADER_EPOCH_GROWS: Final = Property(
    name="leader-epoch-grows",
    promise="The leader epoch of a partition never falls, and a new leader raises it.",
    unknown="No partition state and no change of a replica's role is recorded.",
    source="PartitionStateMachine, Partition.makeLeader; KIP-101, KIP-320.",
    check=LeaderEpochGrows,
    decided_from=frozenset({EventSource.METADATA_LOG}),
    stand_ins=frozenset({EventSource.BROKER_LOGS}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=leaders.leader_epoch_grows,
    breaks=breaks.LEADER_EPOCH_GROWS,
)

ONE_LEADER_PER_EPOCH: Final = Property(
    name="one-leader-per-epoch",
    promise="In one leader epoch at most one broker acts as the partition's leader.",
    unknown=(
        "A broker led in an epoch above all that ZooKeeper's log names, or the log's beginning is missing."
    ),
    source="PartitionStateMachine, Partition.makeLeader; KIP-101, KIP-320.",
    check=OneLeaderPerEpoch,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.TRACES}),
    stand_ins=frozenset({EventSource.QUORUM_LOG, EventSource.BROKER_LOGS}),
    reason=leaders.one_leader_per_epoch,
    breaks=breaks.ONE_LEADER_PER_EPOCH,
)

LEADER_FROM_ISR: Final = Property(
    name="leader-from-isr",
    promise="A leader is elected from the in-sync replicas that are alive.",
    unit="states",
    unknown="An unclean election happened, and no event reports whether the topic permits it.",
    source="PartitionStateMachine, Partition.makeLeader; KIP-101, KIP-320.",
    check=LeaderFromIsr,
    decided_from=frozenset({EventSource.METADATA_LOG}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=leaders.leader_from_isr,
    breaks=breaks.LEADER_FROM_ISR,
)

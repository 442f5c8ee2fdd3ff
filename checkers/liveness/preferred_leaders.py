"""Which partitions wait for their preferred leader, as ZooKeeper's order shows it.

A partition waits while a controller is in office, its preferred replica is alive and in its ISR, another replica leads
it, and more of the partitions that prefer the same broker are led by others than the configuration allows. Nothing
waits while any partition moves, has no state yet, or any topic is to be deleted: the controller may be busy with it.

Members that a leader wrote into the ISR by itself, as before IBP 2.7, count from the next failover on: until then the
controller may not have heard of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from nemesis.checkers import znodes
from nemesis.checkers.assignments import decoded
from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Event, Kind

_DELETIONS: Final = "/admin/delete_topics/"
_REASSIGNMENT: Final = "/admin/reassign_partitions"
_COMMITS: Final = frozenset({Kind.LEADER_ELECTED, Kind.ALTER_PARTITION_HANDLED})
_NO_LEADER: Final = -1

TopicPartition = tuple[str, int]


class Wait(NamedTuple):
    """A partition waited for its preferred leader."""

    tp: TopicPartition
    broker: int
    """The preferred leader."""
    state: Row
    """The write of the partition's state with which the wait was first complete, or that was there before."""
    led: int
    """How many of the partitions that prefer the broker it led then."""
    preferring: int
    term: int
    """How often ``/controller`` had been created."""
    since_zxid: int
    until_zxid: int | None
    """None: until the end of ZooKeeper's log."""


class _State(NamedTuple):
    written: Row
    known_isr: frozenset[int]
    """The members of the ISR of which the controller has certainly heard."""

    @property
    def leader(self) -> int:
        leader = self.written[1].leader
        return _NO_LEADER if leader is None else leader


def waits(rows: Sequence[Row], percentage: int) -> Iterator[Wait]:
    """Yield the waits by their ends. ``percentage``: how many of its partitions a broker need not lead."""
    cluster = _Cluster(percentage, _written_by_controllers(rows))
    pending: dict[TopicPartition, Wait] = {}
    for zxid, parts in groupby(znodes.changes(rows), key=lambda item: item[1].zxid or 0):
        for item in parts:
            cluster.follow(item)
        waiting = {broker: cluster.waiting_for(broker) for broker in sorted(cluster.touched())}
        for tp, wait in [*pending.items()]:
            if wait.term != cluster.term or tp not in waiting.get(wait.broker, {tp}):
                yield pending.pop(tp)._replace(until_zxid=zxid)
        for broker, partitions in waiting.items():
            for tp in sorted(partitions - pending.keys()):
                pending[tp] = cluster.wait(tp, broker, zxid)
    yield from pending.values()


def _written_by_controllers(rows: Sequence[Row]) -> frozenset[tuple[TopicPartition, int]]:
    return frozenset(
        ((event.topic or "", event.partition or 0), event.zxid or 0)
        for _, event in rows
        if event.kind in _COMMITS
    )


@dataclass(slots=True)
class _Cluster:
    """What ZooKeeper has after some of its transactions."""

    percentage: int
    written: frozenset[tuple[TopicPartition, int]]
    """The states that controllers wrote, with their zxids."""
    preferred: dict[TopicPartition, int] = field(default_factory=dict)
    preferring: dict[int, set[TopicPartition]] = field(default_factory=lambda: defaultdict(set))
    states: dict[TopicPartition, _State] = field(default_factory=dict)
    registered: set[int] = field(default_factory=set)
    obstacles: set[object] = field(default_factory=set)
    """What may keep a controller from the balance."""
    is_in_office: bool = False
    term: int = 0
    _touched: set[int] = field(default_factory=set)
    _was_possible: bool = False

    def follow(self, item: Row) -> None:
        """Take in one change of a znode."""
        event = item[1]
        path, is_there = event.path or "", event.zk_op != "delete"
        if path == znodes.CONTROLLER:
            self._change_office(is_in_office=is_there)
        elif path.startswith((_DELETIONS, _REASSIGNMENT)):
            self._block(path, is_blocked=is_there)
        elif path.startswith(znodes.BROKER_IDS) and event.node is not None:
            (self.registered.add if is_there else self.registered.discard)(event.node)
            self._touched.add(event.node)
        elif path.endswith("/state") and event.topic is not None and event.partition is not None:
            self._change_state((event.topic, event.partition), item)
        elif event.topic is not None and path == f"{znodes.TOPICS}{event.topic}":
            self._change_assignment(event.topic, event)

    def touched(self) -> set[int]:
        """Return the brokers for which waits may have changed since the last call."""
        is_possible = self.is_in_office and not self.obstacles
        brokers = {*self.preferring} if is_possible != self._was_possible else self._touched
        self._touched, self._was_possible = set(), is_possible
        return brokers

    def waiting_for(self, broker: int) -> set[TopicPartition]:
        """Return the partitions that wait to be led by this broker."""
        of_others = self._of_others(broker)
        preferring = len(self.preferring[broker])
        if not self._was_possible or broker not in self.registered or not of_others:
            return set()
        if len(of_others) / preferring <= self.percentage / 100:
            return set()
        return {tp for tp in of_others if self._can_lead(broker, tp)}

    def wait(self, tp: TopicPartition, broker: int, zxid: int) -> Wait:
        preferring = len(self.preferring[broker])
        led = preferring - len(self._of_others(broker))
        return Wait(tp, broker, self.states[tp].written, led, preferring, self.term, zxid, None)

    def _of_others(self, broker: int) -> list[TopicPartition]:
        """The partitions that prefer the broker and have another leader, or none."""
        return [
            tp
            for tp in self.preferring[broker]
            if tp in self.states and self.states[tp].leader != broker
        ]

    def _can_lead(self, broker: int, tp: TopicPartition) -> bool:
        state = self.states[tp]
        return state.leader != _NO_LEADER and broker in state.known_isr

    def _change_office(self, *, is_in_office: bool) -> None:
        self.is_in_office = is_in_office
        if is_in_office:
            self.term += 1
            for tp, state in self.states.items():
                members = frozenset(state.written[1].isr or ())
                self.states[tp] = state._replace(known_isr=members)
            self._touched |= {*self.preferring}

    def _block(self, obstacle: object, *, is_blocked: bool) -> None:
        (self.obstacles.add if is_blocked else self.obstacles.discard)(obstacle)

    def _change_state(self, tp: TopicPartition, item: Row) -> None:
        event = item[1]
        before = self.states.pop(tp, None)
        if event.zk_op != "delete" and event.leader is not None:
            members = frozenset(event.isr or ())
            if (tp, event.zxid or 0) not in self.written:
                is_known = before is not None and before.leader == event.leader
                members &= before.known_isr if before is not None and is_known else frozenset()
            self.states[tp] = _State(item, members)
        self._block(tp, is_blocked=tp in self.preferred and tp not in self.states)
        if tp in self.preferred:
            self._touched.add(self.preferred[tp])

    def _change_assignment(self, topic: str, event: Event) -> None:
        assigned = {} if event.zk_op == "delete" else decoded(event.data)
        for tp in [tp for tp in self.preferred if tp[0] == topic]:
            broker = self.preferred.pop(tp)
            self.preferring[broker].discard(tp)
            self._touched.add(broker)
            self.obstacles -= {tp, (*tp, "moves")}
        for partition, assignment in assigned.items():
            tp = (topic, partition)
            self._block((*tp, "moves"), is_blocked=assignment.is_moving)
            self._block(tp, is_blocked=tp not in self.states)
            if assignment.replicas:
                self.preferred[tp] = assignment.replicas[0]
                self.preferring[assignment.replicas[0]].add(tp)
                self._touched.add(assignment.replicas[0])

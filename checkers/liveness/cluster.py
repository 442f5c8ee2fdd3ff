"""When the cluster was without a controller, a leader, a full ISR: ZooKeeper's order at the times that brokers traced.

The log of ZooKeeper says what was so and in which order, and has no time that could be compared with the brokers'. A
change is taken to have happened when a broker first traced its zxid or a later one: at that moment it certainly had.
The definitions are at the head of ``check``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.liveness.time_spans import NONE, Spans, complement, spans
from nemesis.checkers.zxid_times import ZxidTimes
from nemesis.history.events import Event, Kind

KINDS: Final = frozenset(
    {
        Kind.ZNODE,
        Kind.SESSION_CREATED,
        Kind.SESSION_CLOSED,
        Kind.BROKER_STARTED,
        Kind.BROKER_RECONFIGURED,
        Kind.BROKER_REGISTERED,
        Kind.CONTROLLER_ELECTED,
        Kind.CONTROLLER_FAILOVER,
        Kind.CONTROLLER_RESIGNED,
        Kind.LEADER_ELECTED,
        Kind.BECOME_LEADER,
        Kind.ZNODE_OUTCOME,
        Kind.ALTER_PARTITION_HANDLED,
        Kind.FAULT_APPLIED,
    }
)
COLUMNS: Final = (
    *(*znodes.COLUMNS, "incarnation", "targets"),
    *("timeout_ms", "reason", "phase", "min_insync_replicas"),
)

MIN_ISR: Final = "min.insync.replicas"
NO_LEADER: Final = -1
_DELETIONS: Final = "/admin/delete_topics/"
_EXPIRED: Final = "expired"
_MS: Final = 1_000_000

TopicPartition = tuple[str, int]


class Deaths:
    """When processes of brokers ended: by the last fault that struck them before their next start, else at that start.

    That a process has ended is known only once the broker has started anew.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._starts: dict[str, list[int]] = defaultdict(list)
        self._traced: dict[str, list[int]] = defaultdict(list)
        self._struck: dict[str, list[int]] = defaultdict(list)
        for _, event in rows:
            if event.kind == Kind.FAULT_APPLIED:
                for target in event.targets or ():
                    self._struck[target].append(event.time)
            elif event.time >= 0:
                self._traced[event.process].append(event.time)
                if event.kind == Kind.BROKER_STARTED:
                    self._starts[event.process].append(event.time)

    def after(self, process: str, time: int) -> int | None:
        """Return when the process that lived at that time ended; None if it is not known to have ended."""
        start = min(
            (event_time for event_time in self._starts[process] if event_time > time), default=None
        )
        if start is None:
            return None
        last = max(
            (event_time for event_time in self._traced[process] if event_time < start), default=time
        )
        return max(
            (event_time for event_time in self._struck[process] if last <= event_time <= start),
            default=start,
        )


def without_controller(
    rows: Sequence[Row], times: ZxidTimes, deaths: Deaths, end: int
) -> Spans | None:
    """Return from the first finished failover on; None if nobody traced any."""
    losses = _losses(rows, times)
    terms: dict[int | None, Event] = {}
    resigned: dict[tuple[str, int | None], int] = {}
    for _, event in rows:
        if event.kind == Kind.CONTROLLER_ELECTED:
            terms[event.controller_epoch] = event
        elif event.kind == Kind.CONTROLLER_RESIGNED:
            resigned[event.process, event.controller_epoch] = event.time
    serving: list[tuple[int, int]] = []
    for _, event in rows:
        if event.kind != Kind.CONTROLLER_FAILOVER:
            continue
        elected = terms.get(event.controller_epoch)
        loss = losses.get(elected.zxid) if elected is not None else None
        died = deaths.after(event.process, event.time)
        ends = [died, resigned.get((event.process, event.controller_epoch)), end]
        if loss is not None and (died is None or died > loss.known):
            ends.append(loss.since)
        stop = min(ended for ended in ends if ended is not None)
        serving.append((event.time, max(event.time, stop)))
    if not serving:
        return None
    return complement(spans(serving), min(start for start, _ in serving), end)


class Loss(NamedTuple):
    """A broker lost ``/controller``."""

    known: int
    since: int
    """Before that, if its session expired: it had been silent for its time-out then, and could not act so long."""


def _losses(rows: Sequence[Row], times: ZxidTimes) -> dict[int | None, Loss]:
    """Return the losses by the zxid at which ``/controller`` had been created."""
    timeouts = {
        event.session: event.timeout_ms * _MS
        for _, event in rows
        if event.kind == Kind.SESSION_CREATED and event.timeout_ms is not None
    }
    expired = {
        event.session
        for _, event in rows
        if event.kind == Kind.SESSION_CLOSED and event.reason == _EXPIRED
    }
    losses: dict[int | None, Loss] = {}
    owner: Event | None = None
    for _, event in znodes.changes(rows):
        if event.path != znodes.CONTROLLER:
            continue
        known = times.known(event.zxid)
        if owner is not None and known is not None:
            silent = timeouts.get(owner.session, 0) if owner.session in expired else 0
            losses[owner.zxid] = Loss(known, known - silent)
        owner = None if event.zk_op == "delete" else event
    return losses


class State(NamedTuple):
    """What is committed of a partition from this time on."""

    time: int
    leader: int
    leader_epoch: int
    is_full: bool
    """Whether every replica is in the ISR; one that a reassignment is just adding need not be."""
    is_below_min: bool


@dataclass(slots=True)
class Partition:
    """One partition as long as it exists: to the deletion of its state, or the mark that its topic is to be deleted.

    A partition that is created again goes on.
    """

    states: list[State | None] = field(default_factory=list)
    """``None``: it does not exist."""
    times: list[int] = field(default_factory=list)

    def add(self, time: int, state: State | None) -> None:
        self.times.append(time)
        self.states.append(state)

    def stretches(self, end: int) -> Iterator[tuple[int, int, State | None]]:
        """Yield (start, stop, state)."""
        for (start, stop), state in zip(pairwise([*self.times, end]), self.states, strict=True):
            if start < stop:
                yield start, stop, state

    def exists(self, end: int) -> Spans:
        return spans((a, b) for a, b, state in self.stretches(end) if state is not None)

    def not_full(self, end: int) -> Spans:
        return spans((a, b) for a, b, state in self.stretches(end) if state and not state.is_full)

    def below_min(self, end: int) -> Spans:
        return spans((a, b) for a, b, state in self.stretches(end) if state and state.is_below_min)

    def without_leader(self, acts: Sequence[Event], deaths: Deaths, end: int) -> Spans:
        """Return from when its first leader took over (``acts``: become-leader) on, as long as it exists."""
        serving: list[tuple[int, int]] = []
        absent: list[tuple[int, int]] = []
        for start, stop, leader, epoch in self._reigns(end):
            if leader is None:
                absent.append((start, stop))
                continue
            for act in acts:
                is_its_own = act.node == leader and (act.leader_epoch or 0) >= epoch
                if is_its_own and act.time < stop:
                    died = deaths.after(act.process, act.time)
                    until = stop if died is None else min(died, stop)
                    serving.append((max(act.time, start), until))
        if not serving:
            return NONE
        return complement(spans([*serving, *absent]), min(a for a, _ in serving), end)

    def _reigns(self, end: int) -> list[tuple[int, int, int | None, int]]:
        """Return (start, stop, leader or None if there is no partition, first leader epoch), one per leader."""
        reigns: list[tuple[int, int, int | None, int]] = []
        for start, stop, state in self.stretches(end):
            leader = None if state is None else state.leader
            epoch = 0 if state is None else state.leader_epoch
            if reigns and reigns[-1][2] == leader:
                reigns[-1] = (reigns[-1][0], stop, leader, reigns[-1][3])
            else:
                reigns.append((start, stop, leader, epoch))
        return reigns


def partitions(rows: Sequence[Row], times: ZxidTimes) -> dict[TopicPartition, Partition]:
    """Return every partition of which a state was committed at a time that is known."""
    by_partition: dict[TopicPartition, Partition] = defaultdict(Partition)
    min_isr_changes = sorted(
        (event.time, event.min_insync_replicas or 0)
        for _, event in rows
        if event.kind in (Kind.BROKER_STARTED, Kind.BROKER_RECONFIGURED)
    )
    expected: dict[str, dict[int, frozenset[int]]] = {}
    configured: dict[str, int] = {}
    last: dict[TopicPartition, Event] = {}
    for _, event in znodes.changes(rows):
        path, time = event.path or "", times.known(event.zxid)
        is_gone = event.zk_op == "delete"
        if time is None:
            break  # nor is any later one
        touched: list[TopicPartition] = []
        if path.startswith(_DELETIONS) and not is_gone:
            topic = path.removeprefix(_DELETIONS)
            for tp in [tp for tp in last if tp[0] == topic]:
                del last[tp]
                by_partition[tp].add(time, None)
        elif path.startswith(znodes.TOPIC_CONFIGS):
            topic = path.removeprefix(znodes.TOPIC_CONFIGS)
            configured[topic] = 0 if is_gone else _topic_min_isr(event.data)
            touched = [tp for tp in last if tp[0] == topic]
        elif path == f"{znodes.TOPICS}{event.topic}" and event.topic is not None:
            expected[event.topic] = {} if is_gone else _expected(event.data)
            touched = [tp for tp in last if tp[0] == event.topic]
        elif path.endswith("/state") and event.topic is not None and event.partition is not None:
            tp = (event.topic, event.partition)
            if is_gone and last.pop(tp, None) is not None:
                by_partition[tp].add(time, None)
            elif not is_gone and event.leader is not None:
                last[tp] = event
                touched = [tp]
        for tp in touched:
            replicas = expected.get(tp[0], {}).get(tp[1], frozenset())
            by_brokers = [count for since, count in min_isr_changes if since <= time and count]
            least = configured.get(tp[0]) or (by_brokers[-1] if by_brokers else 0)
            by_partition[tp].add(time, _state(time, last[tp], replicas, least))
    return dict(by_partition)


def _state(time: int, event: Event, replicas: frozenset[int], least: int) -> State:
    isr = frozenset(event.isr or ())
    leader = NO_LEADER if event.leader is None else event.leader
    return State(time, leader, event.leader_epoch or 0, replicas <= isr, len(isr) < least)


def _topic_min_isr(data: str | None) -> int:
    """What a topic's own configuration says; 0 if it says nothing."""
    config = znodes.object_in(data).get("config")
    text = config.get(MIN_ISR) if isinstance(config, dict) else None
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def _expected(data: str | None) -> dict[int, frozenset[int]]:
    """Return partition → the replicas that should be in sync, from a topic's znode."""
    topic = znodes.object_in(data)
    listed, adding = topic.get("partitions"), topic.get("adding_replicas")
    joining = adding if isinstance(adding, dict) else {}
    return {
        int(partition): _brokers(replicas) - _brokers(joining.get(partition))
        for partition, replicas in (listed if isinstance(listed, dict) else {}).items()
        if partition.isdecimal()
    }


def _brokers(listed: Any) -> frozenset[int]:
    return frozenset(
        broker for broker in (listed if isinstance(listed, list) else ()) if type(broker) is int
    )

"""Which events lie near the proof of a finding.

ZooKeeper's rows have an order but no time. They are put where the first broker traced their zxid or a later one: not
after it, and not before what was traced of smaller zxids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import ALWAYS, Mask, Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import History
from nemesis.reports.diagram.items import Identity, identity

BEFORE_NS: Final = 8_000_000_000
"""How long before an event of the proof its causes are looked for."""
AFTER_NS: Final = 250_000_000

WORDING: Final = (
    *("session_state", "reason", "change", "step", "strategy", "replica", "from_state", "to_state"),
    *("phase", "check", "source", "count", "zk_op", "detail"),
)
"""Columns in which events of one kind differ that are otherwise about the same."""
COLUMNS: Final = (
    *ALWAYS,
    *("incarnation", "node", "op", "f", "value", "values", "offsets", "acks", "topic", "partition"),
    *(
        "controller_id",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "broker_epoch",
        "isr",
    ),
    *WORDING,
    *("role", "offset", "last_offset", "high_watermark", "log_end_offset", "api", "peer", "error"),
    *(
        "session",
        "zxid",
        "path",
        "ephemeral",
        "fault",
        "fault_id",
        "targets",
        "effect",
    ),
)
FAULTS: Final = (Kind.FAULT_INVOKE, Kind.FAULT_APPLIED, Kind.FAULT_HEALED)
_CLUSTER: Final = (
    *(Kind.BROKER_STARTED, Kind.BROKER_REGISTERED, Kind.SESSION_STATE),
    *(Kind.CONTROLLER_ELECTED, Kind.CONTROLLER_FAILOVER, Kind.CONTROLLER_RESIGNED),
    *(
        Kind.CONTROL_REQUEST_SENT,
        Kind.CONTROL_REQUEST_HANDLED,
        Kind.ZNODE_ATTEMPT,
        Kind.ZNODE_OUTCOME,
    ),
)
_LEADERSHIP: Final = (Kind.LEADER_ELECTED, Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.TRUNCATE)
_PARTITION: Final = (
    *(Kind.ISR_CHANGE_PROPOSED, Kind.ISR_CHANGE_COMMITTED, Kind.LOG_LOADED, Kind.REPLICA_STOPPED),
    *(Kind.APPEND, Kind.HIGH_WATERMARK, Kind.PRODUCE_ACKNOWLEDGED),
    *(Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO),
)
_ZOOKEEPER: Final = (Kind.ZNODE, Kind.SESSION_CLOSED)


@dataclass(frozen=True, slots=True)
class ProofTimes:
    """The proof of a finding: its events, and when they happened."""

    events: tuple[Event, ...]
    proof_times: tuple[int, ...]
    subject: tuple[str, int] | None
    """The partition that the proof speaks of, if it is one."""
    brokers: frozenset[int]
    """Those that the proof speaks of."""
    zxids: ZxidClock
    owners: Mapping[int, str]
    """ZooKeeper session → the broker that registered in it."""

    @classmethod
    def of(cls, finding: Finding, clock: ZxidClock, owners: Mapping[int, str]) -> ProofTimes:
        proof = (*finding.causes, *finding.events)
        events = tuple(msgspec.convert(event, Event) for event in proof if "kind" in event)
        times = [clock.time(event) for event in events]
        partitions = {(e.topic, e.partition) for e in events if e.topic and e.partition is not None}
        nodes = [number for e in events for number in (e.node, e.peer, e.leader)]
        return cls(
            events=events,
            proof_times=tuple(sorted(time for time in times if time is not None)),
            subject=min(partitions) if len(partitions) == 1 else None,
            brokers=frozenset(node for node in nodes if node is not None and node >= 0),
            zxids=clock,
            owners=owners,
        )

    @property
    def identities(self) -> frozenset[Identity]:
        return frozenset(map(identity, self.events))

    @property
    def end(self) -> int:
        """Up to when events were gathered."""
        return self.proof_times[-1] + AFTER_NS

    def distance(self, time: int) -> int:
        """Nanoseconds to the nearest event of the proof."""
        return min(abs(time - proof_time) for proof_time in self.proof_times)


class ZxidClock:
    """When a zxid was committed, as far as those who traced zxids tell."""

    def __init__(self, traced: Sequence[tuple[int, int]]) -> None:
        ordered = sorted(traced)
        self._zxids = [zxid for zxid, _ in ordered]
        # What was traced late says nothing: a later zxid traced before it bounds it better.
        times = np.array([time for _, time in ordered], dtype=np.int64)
        self._times = np.minimum.accumulate(times[::-1])[::-1].tolist() if len(times) else []

    @classmethod
    def of(cls, history: History) -> ZxidClock:
        traced: list[tuple[int, int]] = []
        for group in history.row_groups:
            rows = Segment.of(group, (*ALWAYS, "zxid"))
            rows = rows.where(rows.numbers("zxid") > 0)
            time, zxid = rows.numbers("time"), rows.numbers("zxid")
            own = time >= 0
            traced += zip(zxid[own].tolist(), time[own].tolist(), strict=True)
        return cls(traced)

    def time(self, event: Event) -> int | None:
        """Return the event's time; None for one of ZooKeeper's after which nobody traced a zxid."""
        if event.time >= 0:
            return event.time
        position = bisect_left(self._zxids, event.zxid or 0)
        if event.zxid is None or position == len(self._zxids):
            return None
        return int(self._times[position]) - 1


def session_owners(history: History) -> dict[int, str]:
    """Return ZooKeeper session → the broker that said that it is its own."""
    owners: dict[int, str] = {}
    for group in history.row_groups:
        rows = Segment.of(group, (*ALWAYS, "session"))
        for _, event in rows.only([Kind.BROKER_REGISTERED, Kind.CONTROLLER_ELECTED]).events():
            if event.session is not None:
                owners[event.session] = event.process
    return owners


def gather(history: History, instants: ProofTimes) -> list[tuple[int, Event]]:
    """Return (time, event) of what lies near the proof, and of all faults, by time."""
    by_identity: dict[Identity, tuple[int, Event]] = {}
    events = [*instants.events, *_near(history, instants)]
    for event in events:
        time = instants.zxids.time(event)
        if time is not None:
            by_identity.setdefault(identity(event), (time, event))
    return sorted(by_identity.values(), key=lambda item: (item[0], item[1].process, item[1].seq))


def _near(history: History, instants: ProofTimes) -> list[Event]:
    events: list[Event] = []
    for group in history.row_groups:
        rows = Segment.starting_at(group.read(COLUMNS), group.first_row)
        near = _is_near(rows.numbers("time"), instants.proof_times)
        own = rows.is_kind(*FAULTS) | (near & rows.is_kind(*_CLUSTER))
        if instants.subject is None:
            own |= near & rows.is_kind(*_LEADERSHIP)
        else:
            topic, partition = instants.subject
            subject = rows.is_word("topic", [topic]) & (rows.numbers("partition") == partition)
            own |= near & subject & rows.is_kind(*_LEADERSHIP, *_PARTITION)
        events += _plain(rows.where(own))
        zookeeper = rows.where(rows.is_kind(*_ZOOKEEPER))
        events += [event for event in _plain(zookeeper) if _matters(event, instants)]
    return events


def _is_near(time: np.ndarray[Any, np.dtype[np.int64]], proof_times: Sequence[int]) -> Mask:
    near = np.zeros(len(time), dtype=np.bool_)
    for proof_time in proof_times:
        near |= (time >= proof_time - BEFORE_NS) & (time <= proof_time + AFTER_NS)
    return near


def _matters(event: Event, instants: ProofTimes) -> bool:
    """Whether one of ZooKeeper's own events is near, and about the subject or about who is there."""
    time = instants.zxids.time(event)
    if time is None or not _is_near(np.array([time]), instants.proof_times)[0]:
        return False
    if event.kind == Kind.SESSION_CLOSED:
        return True
    if instants.subject is not None and (event.topic, event.partition) == instants.subject:
        return True
    return event.zk_op == "delete" and bool(event.ephemeral)


def _plain(rows: Segment) -> list[Event]:
    return [event for _, event in rows.events()]

"""What ZooKeeper's transaction log says, in the order of its transactions.

The zxid is the order, never the clock: rows of several znodes are joined by (zxid, position in the multi).
Parts of a multi that only check a version change nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.segment import ALWAYS
from nemesis.history.events import Event, Kind
from nemesis.history.quorum_events import PROCESS as QUORUM

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids/"
TOPICS = "/brokers/topics/"
MARKS = "/admin/delete_topics/"
TOPIC_CONFIGS = "/config/topics/"
BROKER_CONFIGS = "/config/brokers/"
"""Of topics that are to be deleted."""

COLUMNS = (
    "zxid",
    "session",
    "zk_op",
    "path",
    "data",
    "node",
    "controller_id",
    "controller_epoch",
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "isr",
)
"""The columns that this module reads."""

_TELL_SESSIONS = frozenset({Kind.CONTROLLER_ELECTED, Kind.BROKER_REGISTERED, Kind.SESSION_STATE})
OWNER_KINDS = frozenset({Kind.ZNODE, *_TELL_SESSIONS})
OWNER_COLUMNS = (*ALWAYS, "session", "zk_op", "path", "node", "controller_id")
"""The kinds of events and the columns that ``session_owners`` reads."""
_CHANGES = frozenset({"create", "setData", "delete"})


def changes(rows: Iterable[Row]) -> list[Row]:
    """Return the committed changes of znodes, in ZooKeeper's order."""
    committed = [
        (row, event)
        for row, event in rows
        if event.kind == Kind.ZNODE and event.zk_op in _CHANGES and event.path is not None
    ]
    return sorted(committed, key=lambda item: (item[1].zxid or 0, item[1].seq))


def epoch_changes(rows: Iterable[Row]) -> list[Row]:
    """Return the changes of ``/controller_epoch``, in ZooKeeper's order."""
    return [(row, event) for row, event in changes(rows) if event.path == CONTROLLER_EPOCH]


def is_election(event: Event) -> bool:
    """Whether this change of ``/controller_epoch`` grants an epoch: any but creating it with 0, or deleting it."""
    return event.zk_op != "delete" and (event.controller_epoch or 0) > 0


@dataclass(frozen=True, slots=True)
class StateChange:
    """One write of a partition's state znode and the state that it replaced (``None``: it was created)."""

    row: int
    event: Event
    previous_row: int | None
    previous: Event | None
    assigned: frozenset[int] | None = None
    """The partition's replicas at that zxid, those of a reassignment included; ``None`` if they are not known."""

    @property
    def changes_leadership(self) -> bool:
        """Whether leader or leader epoch differ; a change of the ISR alone does not count."""
        if self.previous is None:
            return True
        return (self.event.leader, self.event.leader_epoch) != (
            self.previous.leader,
            self.previous.leader_epoch,
        )


def state_changes(rows: Iterable[Row]) -> Iterator[StateChange]:
    """Yield every readable write of a partition state, in ZooKeeper's order. A deleted one starts anew."""
    last: dict[tuple[str | None, int | None], Row] = {}
    assigned: dict[str | None, dict[int, frozenset[int]]] = {}
    for row, event in changes(rows):
        if event.topic is not None and event.path == f"{TOPICS}{event.topic}":
            assigned[event.topic] = assignment(event)
        if event.partition is None or not (event.path or "").endswith("/state"):
            continue
        key = (event.topic, event.partition)
        if event.zk_op == "delete":
            last.pop(key, None)
        elif event.leader is not None and event.leader_epoch is not None:
            previous_row, previous = last.get(key, (None, None))
            replicas = assigned.get(event.topic, {}).get(event.partition)
            yield StateChange(row, event, previous_row, previous, replicas)
            last[key] = (row, event)


def assignment(event: Event) -> dict[int, frozenset[int]]:
    """Return partition → replicas of a topic znode, those of a reassignment included; nothing of a deleted or
    unreadable one."""
    if event.zk_op == "delete":
        return {}
    data = object_in(event.data)
    replicas: dict[int, frozenset[int]] = {}
    for name in ("partitions", "adding_replicas", "removing_replicas"):
        listed = data.get(name)
        for partition, brokers in (listed if isinstance(listed, dict) else {}).items():
            if partition.isdecimal() and isinstance(brokers, list):
                known = replicas.get(int(partition), frozenset())
                replicas[int(partition)] = known | {
                    broker for broker in brokers if type(broker) is int
                }
    return replicas


def session_owners(rows: Iterable[Row]) -> dict[int, int]:
    """Return session → broker, from what each session created and what brokers said of their sessions.

    Rows of ``SESSION_STATE`` tell of sessions in which a broker did not get as far as its registration.
    """
    owners: dict[int, int] = {}
    for _, event in rows:
        if event.session is None:
            continue
        if event.kind in _TELL_SESSIONS:
            broker = event.node
        elif event.kind == Kind.ZNODE and event.zk_op == "create" and event.path is not None:
            if event.path == CONTROLLER:
                broker = event.controller_id
            else:
                broker = event.node if event.path.startswith(BROKER_IDS) else None
        else:
            broker = None
        if broker is not None:
            owners.setdefault(event.session, broker)
    return owners


def authority(event: Event) -> str:
    """Return the name of the log that decides on this state: ZooKeeper's, or a quorum's metadata log (KIP-500)."""
    return "the metadata log" if event.process == QUORUM else "ZooKeeper"


def object_in(data: str | None) -> dict[str, Any]:
    """Return the JSON object that a znode holds; an empty one if it holds something else."""
    try:
        decoded: Any = msgspec.json.decode(data or "null")
    except msgspec.DecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}

"""What ZooKeeper's log says of the replicas of partitions: the assignments, one after the other, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from nemesis.checkers.addressed import Addressed, addressed
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.znodes import (
    BROKER_IDS,
    MARKS,
    TOPICS,
    changes,
    epoch_changes,
    is_election,
)

TopicPartition = tuple[str, int]


class Assignment(NamedTuple):
    """The replicas of a partition on their way from the original to the target ones (KIP-455)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    def towards(self, target: tuple[int, ...]) -> Assignment:
        """The assignment on the way to other replicas; what an earlier reassignment was adding is forgotten."""
        origin = self.origin
        both = target + tuple(broker for broker in origin if broker not in target)
        return Assignment(
            both,
            tuple(broker for broker in both if broker not in origin),
            tuple(broker for broker in both if broker not in target),
        )

    def towards_in_quorum(self, target: tuple[int, ...]) -> Assignment:
        """The same as a KRaft controller writes it: all replicas of now are the original ones, those that it takes out
        in the order of their ids. What an earlier move was adding counts as added until this one adds others.

        The original replicas of a partition are never all new, so here these stand for replicas that are not known.
        """
        if not self.origin:
            return Assignment(target, target)
        removing = tuple(sorted(set(self.replicas).difference(target)))
        adding = tuple(broker for broker in target if broker not in self.replicas)
        return Assignment(target + removing, adding or self.adding, removing)


@dataclass(frozen=True, slots=True)
class Removal:
    """A partition lost a replica."""

    row: int
    zxid: int


@dataclass(slots=True)
class Assignments:
    """What is true at the end, and how it came about."""

    current: dict[TopicPartition, Assignment]
    removals: dict[tuple[TopicPartition, int], Removal]
    """(partition, broker) → when the broker was taken out last, in this life of the topic."""
    removals_of_deleted: dict[tuple[TopicPartition, int], Removal]
    """The same of topics that were deleted without the broker; it has had no replica of the name since."""
    registered: dict[int, int]
    """Broker → the zxid of its registration, of those that are registered at the end."""
    elected: int
    """The zxid of the last election of a controller."""
    deleted: set[str]
    """Topics that were deleted, also when they exist again."""
    gone: set[str]
    """Topics that were deleted and do not exist at the end."""
    marked: set[str]
    """Topics that are marked for deletion at the end."""
    addressed: Addressed
    """Which brokers the writers of assignments knew to be there."""

    def might_not_know(self, removal: Removal, broker: int) -> bool:
        """Whether the broker may never have been told that a replica of its was taken away.

        The controller tells it before it writes the assignment, and again until it is heard; it gives up when the
        broker's registration ends, or its own office. It does not tell a broker of whose registration it has not
        heard yet.
        """
        since = self.registered.get(broker)
        return (
            since is None
            or self.elected > removal.zxid
            or not self.addressed.before(removal.zxid, (broker, since))
        )


def assignments(rows: Iterable[Row]) -> Assignments:
    """Follow the znodes of topics, brokers and controllers."""
    listed = list(rows)
    elections = [event.zxid or 0 for _, event in epoch_changes(listed) if is_election(event)]
    state = Assignments(
        {}, {}, {}, {}, max(elections, default=-1), set(), set(), set(), addressed(listed)
    )
    for row, event in changes(listed):
        path = event.path or ""
        if path.startswith(BROKER_IDS) and (name := path.removeprefix(BROKER_IDS)).isdecimal():
            state.registered.pop(int(name), None)
            if event.zk_op == "create":
                state.registered[int(name)] = event.zxid or 0
        elif (topic := path.removeprefix(MARKS)) != path:
            (state.marked.discard if event.zk_op == "delete" else state.marked.add)(topic)
        elif (topic := path.removeprefix(TOPICS)) != path and "/" not in topic:
            _follow(state, topic, decoded(event.data), Removal(row, event.zxid or 0), event.zk_op)
    return state


def _follow(
    state: Assignments,
    topic: str,
    written: dict[int, Assignment],
    change: Removal,
    operation: str | None,
) -> None:
    if operation == "delete":
        state.deleted.add(topic)
        state.gone.add(topic)
        state.removals_of_deleted |= {
            (tp, broker): removal
            for (tp, broker), removal in state.removals.items()
            if tp[0] == topic and broker not in state.current[tp].replicas
        }
        state.current = {
            tp: assignment for tp, assignment in state.current.items() if tp[0] != topic
        }
        state.removals = {
            key: removal for key, removal in state.removals.items() if key[0][0] != topic
        }
        return
    if operation == "create":
        state.gone.discard(topic)
    for partition, assignment in written.items():
        before = state.current.get((topic, partition), Assignment(()))
        for broker in set(before.replicas).difference(assignment.replicas):
            state.removals[(topic, partition), broker] = change
        for broker in assignment.replicas:
            state.removals_of_deleted.pop(((topic, partition), broker), None)
        state.current[topic, partition] = assignment


def decoded(data: str | None) -> dict[int, Assignment]:
    """Partition → assignment of a topic's znode; nothing of an unreadable one."""
    try:
        value: Any = msgspec.json.decode(data or "null")
    except msgspec.DecodeError:
        return {}
    if not isinstance(value, dict):
        return {}
    return {
        int(name): Assignment(*(_brokers(value, column, name) for column in _COLUMNS))
        for name in _by_partition(value, "partitions")
        if name.isdecimal()
    }


_COLUMNS = ("partitions", "adding_replicas", "removing_replicas")


def _brokers(value: dict[str, Any], column: str, partition: str) -> tuple[int, ...]:
    listed = _by_partition(value, column).get(partition) or ()
    return tuple(broker for broker in listed if type(broker) is int)


def _by_partition(value: dict[str, Any], column: str) -> dict[str, Any]:
    listed = value.get(column)
    return listed if isinstance(listed, dict) else {}

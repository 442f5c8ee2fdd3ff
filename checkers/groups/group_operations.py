"""Operations of members of groups, and the partitions that they own, read from the events of one history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Event, Kind

COMMIT, FETCH, JOIN = "commit-offset", "fetch-offset", "join-group"
SYNC, HEARTBEAT, LEAVE = "sync-group", "heartbeat", "leave-group"
FUNCTIONS: Final = frozenset({COMMIT, FETCH, JOIN, SYNC, HEARTBEAT, LEAVE})
WORKLOADS: Final = frozenset({"groups"})
"""The workloads in which groups are used."""
COLUMNS: Final = (
    *("group", "member", "generation", "instance", "topic", "partition", "node", "f", "op"),
    *("offset", "leader_epoch", "value"),
)
_NEVER: Final = 2**63 - 1

TopicPartition = tuple[str | None, int | None]
_Owner = tuple[str, str | None, TopicPartition]
"""Process, member id and partition: a process may be another member while the one before still sleeps."""
Membership = tuple[str | None, str | None, int | None]
"""A group, a member id and a generation."""


@dataclass(slots=True)
class Operation:
    """One operation of a member, from its invocation to its completion."""

    invoked: Row
    completed: Row | None = None
    is_settled: bool = False
    """Whether the member had its assignment of this generation when it sent the request: the generation was stored."""

    @property
    def event(self) -> Event:
        """The completion, or the invocation while it has no outcome."""
        return self.invoked[1] if self.completed is None else self.completed[1]

    @property
    def began(self) -> int:
        return self.invoked[1].time

    @property
    def ended(self) -> int:
        """When the member knew the outcome; never if it does not."""
        return _NEVER if self.completed is None else self.completed[1].time

    @property
    def is_ok(self) -> bool:
        return self.completed is not None and self.completed[1].kind == Kind.OK

    @property
    def is_refused(self) -> bool:
        return self.completed is not None and self.completed[1].kind == Kind.FAIL

    @property
    def tp(self) -> TopicPartition:
        return self.event.topic, self.event.partition

    @property
    def generation(self) -> int:
        return -1 if self.event.generation is None else self.event.generation


@dataclass(slots=True)
class Ownership:
    """A member owns a partition in a generation, until it gives it up or for ever."""

    assigned: Row
    ended: int = _NEVER

    @property
    def event(self) -> Event:
        return self.assigned[1]


@dataclass(slots=True)
class Group:
    """What is known of one group."""

    operations: list[Operation] = field(default_factory=list)
    """In the order of their invocations."""
    ownerships: list[Ownership] = field(default_factory=list)

    def ok(self, *functions: str) -> list[Operation]:
        """Return the operations of these functions that succeeded."""
        return [item for item in self.operations if item.is_ok and item.event.f in functions]


def groups(rows: Iterable[Row]) -> dict[str, Group]:
    """Return the groups of a history by id. An outcome without an invocation is left out: a torn history."""
    by_id: dict[str, Group] = defaultdict(Group)
    open_operations: dict[tuple[str, int | None], Operation] = {}
    owned: dict[_Owner, Ownership] = {}
    settled: dict[str, set[Membership]] = defaultdict(set)
    for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].process, item[1].seq)):
        if event.group is None:
            continue
        group = by_id[event.group]
        if event.kind == Kind.INVOKE:
            if event.f == JOIN:
                settled[event.process].clear()
            is_settled = _membership(event) in settled[event.process]
            operation = Operation((row, event), is_settled=is_settled)
            open_operations[event.process, event.op] = operation
            group.operations.append(operation)
        elif event.kind == Kind.ASSIGNED:
            _end(owned, event)
            ownership = owned[_owner(event)] = Ownership((row, event))
            group.ownerships.append(ownership)
        elif event.kind == Kind.REVOKED:
            _end(owned, event)
        elif (known := open_operations.pop((event.process, event.op), None)) is not None:
            known.completed = (row, event)
            if event.f == SYNC and known.is_ok:
                settled[event.process].add(_membership(event))
    return dict(by_id)


def _owner(event: Event) -> _Owner:
    return event.process, event.member, (event.topic, event.partition)


def _end(owned: dict[_Owner, Ownership], event: Event) -> None:
    """End an ownership: a member that is assigned a partition again owns it in the new generation only."""
    if (ownership := owned.pop(_owner(event), None)) is not None:
        ownership.ended = event.time


def _membership(event: Event) -> Membership:
    return event.group, event.member, event.generation

"""Moves that an operator requested through ``/admin/reassign_partitions`` and that a controller dropped.

ZooKeeper's order shows for each partition in the znode when it came in, when a controller took it out, and which
replicas it had meanwhile. A controller takes a partition out after it has written the target as the partition's
replicas, or because it cannot or must not move it. The second is excluded where

* the controller that took it out was in office since before it did: its write was not one of a session that had ended;
* the topic existed when the request came, had a state of the partition, and was neither deleted nor marked for it until
  then; so each controller that read the request knew the partition;
* the partition was not being moved when the request came: no earlier move could be in the way;
* no request through the API, and no cancel, can have been carried out in between. Each takes the partition out first.
  So none named the partition, or it was answered before the operation of the operator began, or was sent some time
  after the operation had ended. An operation with this path ends only when the znode is gone.

Whether the target's brokers are alive does not matter: Kafka checks that in requests through the API only.
Source: KafkaController (processZkPartitionReassignment, maybeRemoveFromZkReassignment, processApiPartitionReassignment)
of Kafka 2.4 to 3.9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import msgspec

from nemesis.checkers.assignments import Assignment, TopicPartition, decoded
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.znodes import CONTROLLER, CONTROLLER_EPOCH, MARKS, TOPICS, changes
from nemesis.history.events import Event, Kind

PATH: Final = "/admin/reassign_partitions"
_MOVES: Final = frozenset({"reassign", "cancel-reassign"})
_STALE_NS: Final = 10 * 1_000_000_000
"""A member of ZooKeeper may lag this much: the harness may have seen the znode gone before a controller removed it."""

Target = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A requested move that was not made."""

    tp: TopicPartition
    target: Target
    requested: int
    """The row of the write that put the partition into the znode."""
    removed: int
    """The row of the write that took it out."""


@dataclass(slots=True)
class _Request:
    target: Target
    row: int
    can_be_made: bool
    is_made: bool


@dataclass(slots=True)
class _Operation:
    """A request of a client, and when it began and ended, in nanoseconds."""

    event: Event
    began: float = -inf
    ended: float = inf
    outcome: str | None = None


@dataclass(slots=True)
class _Cluster:
    """What ZooKeeper has after some of its transactions."""

    office: int | None = None
    """The zxid at which the owner of ``/controller`` came into office."""
    epoch: int | None = None
    """The zxid of the last controller epoch."""
    assigned: dict[TopicPartition, Assignment] = field(default_factory=dict)
    with_state: set[TopicPartition] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    """Topics that are or were deleted, or marked for it."""
    requests: dict[TopicPartition, _Request] = field(default_factory=dict)

    @property
    def is_in_office(self) -> bool:
        """Whether the owner of ``/controller`` has the last epoch: both are written at once."""
        return self.office is not None and self.office == self.epoch

    def follow(self, event: Event) -> None:
        """Take in one change of another znode than that of the requests."""
        path, is_there = event.path or "", event.zk_op != "delete"
        if path == CONTROLLER:
            self.office = event.zxid if event.zk_op == "create" else None
        elif path == CONTROLLER_EPOCH:
            self.epoch = event.zxid
        elif path.startswith(MARKS):
            self.deleted.add(path.removeprefix(MARKS))
        elif event.topic is not None and path == f"{TOPICS}{event.topic}":
            if is_there:
                self._assign(event.topic, decoded(event.data))
            else:
                self.deleted.add(event.topic)
        elif path.endswith("/state") and event.topic is not None and event.partition is not None:
            (self.with_state.add if is_there else self.with_state.discard)(
                (event.topic, event.partition)
            )

    def _assign(self, topic: str, partitions: dict[int, Assignment]) -> None:
        for partition, assignment in partitions.items():
            tp = (topic, partition)
            self.assigned[tp] = assignment
            request = self.requests.get(tp)
            if request is not None and assignment == Assignment(request.target):
                request.is_made = True

    def rewrite(self, item: Row) -> Iterator[Dropped]:
        """Take in a change of the znode of the requests; yield what a correct controller would not take out."""
        row, event = item
        wanted = {} if event.zk_op == "delete" else _targets(event.data)
        for tp, request in [*self.requests.items()]:
            if wanted.get(tp) == request.target:
                continue
            del self.requests[tp]
            is_due = request.can_be_made and not request.is_made and tp[0] not in self.deleted
            if is_due and self.is_in_office:
                yield Dropped(tp, request.target, request.row, row)
        for tp, target in wanted.items():
            if tp not in self.requests:
                assignment = self.assigned.get(tp)
                self.requests[tp] = _Request(
                    target,
                    row,
                    can_be_made=assignment is not None
                    and not assignment.is_moving
                    and tp in self.with_state,
                    is_made=assignment == Assignment(target),
                )


def dropped(rows: Iterable[Row]) -> Iterator[Dropped]:
    """Yield the moves that were taken out of the znode, not made, and not replaced by a request through the API."""
    listed = list(rows)
    operations = _operations(listed)
    cluster = _Cluster()
    for item in changes(listed):
        if item[1].path != PATH:
            cluster.follow(item[1])
            continue
        for move in cluster.rewrite(item):
            if not _may_be_replaced(move, operations[move.tp]):
                yield move


def _may_be_replaced(move: Dropped, operations: list[_Operation]) -> bool:
    """Whether another request of the partition may have been carried out before the move was taken out."""
    asked = [
        operation
        for operation in operations
        if operation.event.path == PATH
        and tuple(operation.event.replicas or ()) == move.target
        and operation.outcome != Kind.FAIL
    ]
    if not asked:
        return True
    began = min(operation.began for operation in asked)
    ended = max(operation.ended for operation in asked) + _STALE_NS
    return any(
        operation.began <= ended
        and not (operation.outcome in {Kind.OK, Kind.FAIL} and operation.ended < began)
        for operation in operations
        if operation.event.path != PATH
    )


def _operations(rows: Iterable[Row]) -> dict[TopicPartition, list[_Operation]]:
    """By partition, what clients asked for, through the API or through ZooKeeper."""
    known: dict[tuple[str, int | None], _Operation] = {}
    by_partition: dict[TopicPartition, list[_Operation]] = defaultdict(list)
    for _, event in rows:
        if event.f not in _MOVES or event.topic is None or event.partition is None:
            continue
        key = (event.process, event.op)
        if key not in known:
            known[key] = _Operation(event)
            by_partition[event.topic, event.partition].append(known[key])
        if event.kind == Kind.INVOKE:
            known[key].began = event.time
        else:
            known[key].ended, known[key].outcome = event.time, event.kind
    return by_partition


def _targets(data: str | None) -> dict[TopicPartition, Target]:
    """The replicas that each partition in the znode shall have; nothing of an unreadable one."""
    try:
        value: Any = msgspec.json.decode(data or "null")
        return {
            (str(item["topic"]), int(item["partition"])): tuple(map(int, item["replicas"]))
            for item in value["partitions"]
        }
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return {}

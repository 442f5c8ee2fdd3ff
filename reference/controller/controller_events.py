"""What can happen to a controller: one small class per event, named after Kafka's."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import AlterPartitionAnswer, AlterPartitionItem
from nemesis.reference.model import ApiError, TopicPartition
from nemesis.reference.zk.producer_id_block import ProducerIdsBlock
from nemesis.reference.zk.zk_data import ReplicaAssignment

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Event:
    """An event that may be thrown out of the queue without telling anybody."""

    def preempt(self) -> None:
        """Nothing waits for the event."""


class Startup(Event):
    """The broker starts: register it, then try to be elected."""


class Reelect(Event):
    """``/controller`` was created, written or deleted, or its watch was lost."""


class Expire(Event):
    """The session is over: resign before the next one opens."""


class RegisterBrokerAndReelect(Event):
    """A new session is there: register the broker in it, under a new broker epoch, and try to be elected."""


class BrokerChange(Event):
    """Children of ``/brokers/ids`` came or went."""


class TopicChange(Event):
    """Children of ``/brokers/topics`` came or went."""


class ZkPartitionReassignment(Event):
    """``/admin/reassign_partitions`` was created, written or deleted."""


@dataclass(frozen=True, slots=True)
class PartitionReassignmentIsrChange(Event):
    """The state of a partition that is being reassigned was written."""

    topic_partition: TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionModifications(Event):
    """A topic's znode was written."""

    topic: str


class UncleanLeaderElectionEnable(Event):
    """This broker's configuration permits unclean elections from now on."""


@dataclass(frozen=True, slots=True)
class TopicUncleanLeaderElectionEnable(Event):
    """A topic's configuration was written, and permits unclean elections."""

    topic: str


class TopicDeletion(Event):
    """Children of ``/admin/delete_topics`` came or went."""


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived(Event):
    """A broker has answered a StopReplica that was to delete replicas of topics that are being deleted."""

    controller_epoch: int
    broker_epoch: int
    """Those that the request carried: an answer of an earlier term or life says nothing about this one."""
    replica_id: int
    partition_errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class BrokerModifications(Event):
    """A live broker's znode was written or deleted, or its watch was lost."""

    broker_id: int


class IsrChangeNotification(Event):
    """Children of ``/isr_change_notification`` came or went."""


class LogDirEventNotification(Event):
    """Children of ``/log_dir_event_notification`` came or went."""


class ZkPreferredReplicaElection(Event):
    """``/admin/preferred_replica_election`` was created or written, or its watch was lost."""


class AutoPreferredReplicaLeaderElection(Event):
    """It is time to look whether preferred replicas lead."""


@dataclass(frozen=True, slots=True)
class NewerControllerNoticed(Event):
    """Somebody knows of a newer controller than the one that we were in ``controller_epoch``."""

    controller_epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReplicasFailed(Event):
    """A broker could not open the logs of these partitions (KAFKA_STORAGE_ERROR to a LeaderAndIsr)."""

    controller_epoch: int
    broker_epoch: int
    """Those that the request carried, as above."""
    broker_id: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RequestEvent(Event, ABC, Generic[Answer]):
    """A request of a client or broker; ``result`` is set exactly once. Make one inside a running loop.

    One that never gets processed, because this broker is not the controller or stops being it, is answered with
    ``refusal``.
    """

    result: asyncio.Future[Answer] = field(
        init=False, repr=False, default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    @abstractmethod
    def refusal(self) -> Answer: ...

    def answer(self, answer: Answer) -> None:
        """Only the first answer counts."""
        if not self.result.done():
            self.result.set_result(answer)

    def preempt(self) -> None:
        self.answer(self.refusal)


AlterPartitionResult = tuple[ErrorCode, list[AlterPartitionAnswer]]
"""The request's own error, and without one an answer for each of its partitions, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class AlterPartitionReceived(RequestEvent[AlterPartitionResult]):
    """A leader proposes ISRs."""

    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterPartitionItem, ...]

    @property
    def refusal(self) -> AlterPartitionResult:
        return ErrorCode.not_controller, []


AllocateProducerIdsResult = ProducerIdsBlock | ErrorCode
"""The block, which is that broker's alone, or why it gets none."""


@dataclass(frozen=True, slots=True, eq=False)
class AllocateProducerIds(RequestEvent[AllocateProducerIdsResult]):
    """A broker asks for a block of producer ids."""

    broker_id: int
    broker_epoch: int

    @property
    def refusal(self) -> AllocateProducerIdsResult:
        return ErrorCode.not_controller


AlterReassignmentsResult = tuple[ErrorCode, Mapping[TopicPartition, ApiError]]
"""The request's own error, and without one an answer for each of its partitions; NONE means that it has begun."""


@dataclass(frozen=True, slots=True, eq=False)
class ApiPartitionReassignment(RequestEvent[AlterReassignmentsResult]):
    """AlterPartitionReassignments: the replicas that partitions shall have; None cancels what is in progress."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]

    @property
    def refusal(self) -> AlterReassignmentsResult:
        return ErrorCode.not_controller, {}


ListReassignmentsResult = tuple[ErrorCode, Mapping[TopicPartition, ReplicaAssignment]]
"""The request's own error, and without one the assignments that are on the way to another."""


@dataclass(frozen=True, slots=True, eq=False)
class ListPartitionReassignments(RequestEvent[ListReassignmentsResult]):
    """ListPartitionReassignments, of these partitions or, with None, of all."""

    partitions: tuple[TopicPartition, ...] | None

    @property
    def refusal(self) -> ListReassignmentsResult:
        return ErrorCode.not_controller, {}


class ElectionType(IntEnum):
    """As in ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


ElectionResults = dict[TopicPartition, int | ApiError]
"""The new leader of each partition, or why none was elected."""


ControlledShutdownResult = tuple[ErrorCode, list[TopicPartition]]
"""The request's error, and the partitions that the broker still leads."""


@dataclass(frozen=True, slots=True, eq=False)
class ControlledShutdown(RequestEvent[ControlledShutdownResult]):
    """A broker wants to leave; −1 is a sender that does not know its broker epoch."""

    broker_id: int
    broker_epoch: int

    @property
    def refusal(self) -> ControlledShutdownResult:
        return ErrorCode.stale_controller_epoch, []


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaLeaderElection(RequestEvent[ElectionResults]):
    """A client asks for elections (ElectLeaders)."""

    partitions: tuple[TopicPartition, ...]
    election_type: ElectionType

    @property
    def refusal(self) -> ElectionResults:
        return dict.fromkeys(self.partitions, ApiError(ErrorCode.not_controller))

"""CreateTopics on the controller: validate, assign replicas, write the znodes, wait until there are leaders.

The controller learns of the topic through its watch on ``/brokers/topics`` like of any other change. Source:
kafka.server.ZkAdminManager and kafka.zk.AdminZkClient.

Limits: topic configurations are not supported yet and are refused with INVALID_CONFIG rather than ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 — the type only
from uuid import UUID

from kio.schema.errors import ErrorCode

from reference.kafka_config import KafkaConfig
from reference.model import TopicPartition
from reference.server.admin_utils import assign_replicas_to_brokers, topic_name_problem
from reference.server.metadata_cache import MetadataCache
from reference.zk.errors import NodeExistsError, ZooKeeperError
from reference.zk.kafka_zk_client import KafkaZkClient
from reference.zk.zk_data import ReplicaAssignment, TopicAssignment, random_topic_id

_logger = logging.getLogger(__name__)

USE_DEFAULT = -1
MAX_PARTITIONS = 10_000
_LEADER_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to be created; −1 stands for the broker's default."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Replicas by partition; empty lets the broker choose."""
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What came of one topic; everything but the name is only set without an error."""

    name: str
    error: ErrorCode = ErrorCode.none
    message: str | None = None
    topic_id: UUID | None = None
    num_partitions: int = -1
    replication_factor: int = -1


class _InvalidTopicError(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ZkAdminManager:
    """Only the controller's broker is asked; whoever calls has checked that."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        zk_client: KafkaZkClient,
        metadata_cache: MetadataCache,
        rng: Random,
    ) -> None:
        self._config = config
        self._zk_client = zk_client
        self._metadata_cache = metadata_cache
        self._rng = rng

    async def create_topics(
        self, topics: Sequence[TopicSpec], *, validate_only: bool, timeout_ms: int
    ) -> list[CreatedTopic]:
        """Create each topic that is valid and wait for the leaders of all; results in their order.

        Only the waiting is bounded by ``timeout_ms``: with 0, clients ask for no more than that the topics are
        created. REQUEST_TIMED_OUT means that the topic exists without leaders yet.
        """
        results = [await self._create(spec, validate_only=validate_only) for spec in topics]
        if validate_only:
            return results
        try:
            async with asyncio.timeout(max(timeout_ms, 0) / 1000):
                for created in results:
                    if created.error is ErrorCode.none:
                        await self._wait_for_leaders(created)
        except TimeoutError:
            _logger.info("no leaders yet for some of %s", [spec.name for spec in topics])
        return [self._settled(created) for created in results]

    def _settled(self, created: CreatedTopic) -> CreatedTopic:
        """The result, unless the topic still lacks a leader."""
        if created.error is not ErrorCode.none or self._has_leaders(created):
            return created
        return CreatedTopic(created.name, ErrorCode.request_timed_out, "There are no leaders yet.")

    async def _create(self, spec: TopicSpec, *, validate_only: bool) -> CreatedTopic:
        try:
            await self._refuse_bad_name(spec)
            if spec.configs:
                raise _InvalidTopicError(
                    ErrorCode.invalid_config,
                    f"topic configuration is not supported: {', '.join(sorted(spec.configs))}",
                )
            assignment = TopicAssignment(spec.name, random_topic_id(self._rng), self._assign(spec))
            if not validate_only:
                await self._zk_client.topics.create_topic(assignment, {})
        except _InvalidTopicError as error:
            return CreatedTopic(spec.name, error.code, str(error))
        except NodeExistsError:
            return CreatedTopic(
                spec.name, ErrorCode.topic_already_exists, f"Topic '{spec.name}' already exists."
            )
        except ZooKeeperError as error:
            return CreatedTopic(spec.name, ErrorCode.unknown_server_error, str(error))
        return CreatedTopic(
            spec.name,
            topic_id=assignment.topic_id,
            num_partitions=len(assignment.partitions),
            replication_factor=len(assignment.partitions[0].replicas),
        )

    async def _refuse_bad_name(self, spec: TopicSpec) -> None:
        existing = await self._zk_client.topics.get_all_topics()
        if spec.name in existing:
            raise NodeExistsError(spec.name)
        problem = topic_name_problem(spec.name, existing)
        if problem is not None:
            raise _InvalidTopicError(ErrorCode.invalid_topic_exception, problem)

    def _assign(self, spec: TopicSpec) -> dict[int, ReplicaAssignment]:
        brokers = [broker.id for broker in self._metadata_cache.alive_brokers()]
        if spec.assignment:
            if (spec.num_partitions, spec.replication_factor) != (USE_DEFAULT, USE_DEFAULT):
                raise _InvalidTopicError(
                    ErrorCode.invalid_request,
                    "numPartitions and replicationFactor must be -1 with an assignment.",
                )
            return _checked_assignment(spec.assignment, brokers)
        partitions = spec.num_partitions
        if partitions == USE_DEFAULT:
            partitions = self._config.num_partitions
        factor = spec.replication_factor
        if factor == USE_DEFAULT:
            factor = self._config.default_replication_factor
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise _InvalidTopicError(
                ErrorCode.invalid_partitions,
                f"Number of partitions is {partitions}; allowed are 1 to {MAX_PARTITIONS}.",
            )
        if not 1 <= factor <= len(brokers):
            raise _InvalidTopicError(
                ErrorCode.invalid_replication_factor,
                f"Replication factor is {factor}; there are {len(brokers)} live brokers.",
            )
        return assign_replicas_to_brokers(brokers, partitions, factor, self._rng)

    async def _wait_for_leaders(self, created: CreatedTopic) -> None:
        while not self._has_leaders(created):
            await asyncio.sleep(_LEADER_POLL_S)

    def _has_leaders(self, created: CreatedTopic) -> bool:
        return all(
            self._has_leader(TopicPartition(created.name, partition), created.topic_id)
            for partition in range(created.num_partitions)
        )

    def _has_leader(self, topic_partition: TopicPartition, topic_id: UUID | None) -> bool:
        state = self._metadata_cache.partition_info(topic_partition)
        return state is not None and state.topic_id == topic_id and state.leader >= 0


def _checked_assignment(
    assignment: Mapping[int, tuple[int, ...]], brokers: Sequence[int]
) -> dict[int, ReplicaAssignment]:
    def refuse(message: str) -> _InvalidTopicError:
        return _InvalidTopicError(ErrorCode.invalid_replica_assignment, message)

    if sorted(assignment) != list(range(len(assignment))):
        raise refuse(f"Partitions are {sorted(assignment)}; they must be numbered from 0.")
    factor = len(assignment[0])
    for partition, replicas in assignment.items():
        if not replicas or len(replicas) != factor:
            raise refuse("All partitions must have the same number of replicas, at least one.")
        if len(set(replicas)) != len(replicas):
            raise refuse(f"Partition {partition} names a broker twice: {list(replicas)}.")
        unknown = sorted(set(replicas).difference(brokers))
        if unknown:
            raise refuse(f"Partition {partition} names brokers that are not alive: {unknown}.")
    return {
        partition: ReplicaAssignment(tuple(assignment[partition]))
        for partition in sorted(assignment)
    }

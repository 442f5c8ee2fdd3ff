"""CreateTopics, DeleteTopics and CreatePartitions on the controller: validate, write the znodes, wait for the effect.

The controller learns of what is written through its watches like of any other change, and the waiting ends when this
broker's metadata cache shows it: leaders for new partitions, nothing of a deleted topic. Only the waiting is bounded by
the request's time-out: REQUEST_TIMED_OUT says that what was asked for will come about later.
Source: kafka.server.ZkAdminManager and kafka.zk.AdminZkClient.

A topic's settings are written with it, and refused with INVALID_CONFIG when they would have no effect here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random  # noqa: TID251 — the type only
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log_config import ConfigValueError, UnknownConfigError, validate
from nemesis.reference.model import TopicPartition
from nemesis.reference.server import rack_aware_assignment
from nemesis.reference.server.admin_utils import (
    assign_added_partitions,
    assign_replicas_to_brokers,
    assignment_problem,
    topic_name_problem,
)
from nemesis.reference.server.config_helper import ConfigEntry, ConfigHelper
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.zk.errors import NodeExistsError, NoNodeError, ZooKeeperError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment, random_topic_id

_logger = logging.getLogger(__name__)

USE_DEFAULT = -1
MAX_PARTITIONS = 10_000
_POLL_S = 0.02


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
class PartitionsSpec:
    """How many partitions a topic is to have, and the replicas of the new ones unless the broker chooses."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicResult:
    """What came of one topic; the numbers are those of a topic that was created."""

    name: str | None
    error: ErrorCode = ErrorCode.none
    message: str | None = None
    topic_id: UUID | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[ConfigEntry] = ()


class _RefusedError(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ZkAdminManager:
    """Only the controller's broker is asked; whoever calls has checked that. Results come in the order of requests."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        zk_client: KafkaZkClient,
        metadata_cache: MetadataCache,
        config_helper: ConfigHelper,
        rng: Random,
    ) -> None:
        self._config = config
        self._zk_client = zk_client
        self._metadata_cache = metadata_cache
        self._config_helper = config_helper
        self._rng = rng

    async def create_topics(
        self, topics: Sequence[TopicSpec], *, validate_only: bool, timeout_ms: int
    ) -> list[TopicResult]:
        """Create each topic that is valid and wait for the leaders of all."""
        results = [await self._create(spec, validate_only=validate_only) for spec in topics]
        if validate_only:
            return results
        return await self._settle(
            results, timeout_ms, self._has_leaders, "There are no leaders yet."
        )

    async def create_partitions(
        self, topics: Sequence[PartitionsSpec], *, validate_only: bool, timeout_ms: int
    ) -> list[TopicResult]:
        """Add partitions where that is valid and wait for the leaders of all."""
        results = [await self._grow(spec, validate_only=validate_only) for spec in topics]
        if validate_only:
            return results
        return await self._settle(
            results, timeout_ms, self._has_leaders, "There are no leaders yet."
        )

    async def delete_topics(self, topics: Sequence[str], *, timeout_ms: int) -> list[TopicResult]:
        """Mark each topic for deletion and wait until nobody is told of it any more.

        A topic that is marked already is no error. The replicas may still be there when this returns; the name is free
        when the topic's znodes are gone.
        """
        results = [await self._mark(name) for name in topics]
        return await self._settle(results, timeout_ms, self._is_gone, "It is not deleted yet.")

    async def _settle(
        self,
        results: Sequence[TopicResult],
        timeout_ms: int,
        is_done: Callable[[TopicResult], bool],
        late: str,
    ) -> list[TopicResult]:
        """Wait for those without an error; what is not done in time has one."""
        begun = [result for result in results if result.error is ErrorCode.none]
        try:
            async with asyncio.timeout(max(timeout_ms, 0) / 1000):
                for result in begun:
                    while not is_done(result):
                        await asyncio.sleep(_POLL_S)
        except TimeoutError:
            _logger.info("not done in %d ms: some of %s", timeout_ms, [r.name for r in begun])
        timed_out = ErrorCode.request_timed_out
        return [
            TopicResult(result.name, timed_out, late)
            if result.error is ErrorCode.none and not is_done(result)
            else result
            for result in results
        ]

    # Creation

    async def _create(self, spec: TopicSpec, *, validate_only: bool) -> TopicResult:
        try:
            await self._refuse_bad_name(spec.name)
            configs = _checked_configs(spec.configs)
            assignment = TopicAssignment(spec.name, random_topic_id(self._rng), self._assign(spec))
            if not validate_only:
                await self._zk_client.topics.create_topic(assignment, configs)
        except NodeExistsError:
            error = ErrorCode.topic_already_exists
            return TopicResult(spec.name, error, f"Topic '{spec.name}' already exists.")
        except (_RefusedError, ZooKeeperError) as error:
            return _refused(spec.name, error)
        return TopicResult(
            spec.name,
            topic_id=assignment.topic_id,
            num_partitions=len(assignment.partitions),
            replication_factor=len(assignment.partitions[0].replicas),
            configs=self._config_helper.topic_entries(configs),
        )

    async def _refuse_bad_name(self, name: str) -> None:
        existing = await self._zk_client.topics.get_all_topics()
        if name in existing:
            raise NodeExistsError(name)
        problem = topic_name_problem(name, existing)
        if problem is not None:
            raise _RefusedError(ErrorCode.invalid_topic_exception, problem)
        # In this order: the znode of a deleted topic goes first, and its mark last, after its configuration.
        if await self._zk_client.deletions.is_topic_marked_for_deletion(name):
            raise _RefusedError(
                ErrorCode.topic_already_exists, f"Topic '{name}' is marked for deletion."
            )

    def _assign(self, spec: TopicSpec) -> dict[int, ReplicaAssignment]:
        brokers = self._broker_ids()
        if spec.assignment:
            if (spec.num_partitions, spec.replication_factor) != (USE_DEFAULT, USE_DEFAULT):
                raise _RefusedError(
                    ErrorCode.invalid_request,
                    "numPartitions and replicationFactor must be -1 with an assignment.",
                )
            return _checked(spec.assignment, 0, None, brokers)
        partitions = spec.num_partitions
        if partitions == USE_DEFAULT:
            partitions = self._config.num_partitions
        factor = spec.replication_factor
        if factor == USE_DEFAULT:
            factor = self._config.default_replication_factor
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise _RefusedError(
                ErrorCode.invalid_partitions,
                f"Number of partitions is {partitions}; allowed are 1 to {MAX_PARTITIONS}.",
            )
        if not 1 <= factor <= len(brokers):
            raise _too_few_brokers(factor, brokers)
        racks = self._racks()
        if racks is None:
            return assign_replicas_to_brokers(brokers, partitions, factor, self._rng)
        return rack_aware_assignment.assign_replicas_to_brokers(
            racks, partitions, factor, self._rng
        )

    # Growth

    async def _grow(self, spec: PartitionsSpec, *, validate_only: bool) -> TopicResult:
        try:
            _refuse_paths(spec.name)
            if await self._zk_client.deletions.is_topic_marked_for_deletion(spec.name):
                raise _RefusedError(
                    ErrorCode.invalid_topic_exception, "The topic is queued for deletion."
                )
            present = await self._zk_client.topics.get_replica_assignments([spec.name])
            if not present:
                raise NoNodeError(spec.name)
            grown = replace(present[0], partitions=self._added(spec, present[0]))
            if not validate_only:
                grown = await self._zk_client.topics.add_partitions(
                    spec.name, lambda current: self._added(spec, current)
                )
        except NoNodeError:
            return _unknown(spec.name)
        except (_RefusedError, ZooKeeperError) as error:
            return _refused(spec.name, error)
        return TopicResult(spec.name, topic_id=grown.topic_id, num_partitions=spec.count)

    def _added(
        self, spec: PartitionsSpec, present: TopicAssignment
    ) -> dict[int, ReplicaAssignment]:
        """The assignments of the new partitions of a topic as it is now."""
        existing = present.partitions
        if any(assignment.is_being_reassigned for assignment in existing.values()):
            raise _RefusedError(
                ErrorCode.reassignment_in_progress,
                f"A partition reassignment is in progress for the topic '{spec.name}'.",
            )
        if sorted(existing) != list(range(len(existing))) or not existing:
            raise _RefusedError(
                ErrorCode.unknown_server_error, f"Topic has partitions {sorted(existing)}."
            )
        if not len(existing) < spec.count <= MAX_PARTITIONS:
            raise _RefusedError(
                ErrorCode.invalid_partitions,
                f"Topic currently has {len(existing)} partitions, {spec.count} were requested; "
                f"allowed are up to {MAX_PARTITIONS}.",
            )
        brokers = self._broker_ids()
        factor = len(existing[0].replicas)
        if spec.assignments is None:
            if factor > len(brokers):
                raise _too_few_brokers(factor, brokers)
            racks = self._racks()
            if racks is None:
                return assign_added_partitions(brokers, existing, spec.count)
            return rack_aware_assignment.assign_added_partitions(racks, existing, spec.count)
        increment = spec.count - len(existing)
        if len(spec.assignments) != increment:
            raise _RefusedError(
                ErrorCode.invalid_replica_assignment,
                f"Increasing the number of partitions by {increment} "
                f"but {len(spec.assignments)} assignments provided.",
            )
        assignment = dict(enumerate(spec.assignments, start=len(existing)))
        return _checked(assignment, len(existing), factor, brokers)

    # Deletion

    async def _mark(self, name: str) -> TopicResult:
        topic_id = self._metadata_cache.topic_id(name)
        try:
            _refuse_paths(name)
            if not await self._zk_client.topics.topic_exists(name):
                raise NoNodeError(name)
            await self._zk_client.deletions.create_delete_topic_path(name)
        except NodeExistsError:
            _logger.info("topic %s is marked for deletion already", name)
        except NoNodeError:
            return _unknown(name)
        except (_RefusedError, ZooKeeperError) as error:
            return _refused(name, error)
        return TopicResult(name, topic_id=topic_id)

    # What this broker knows of the cluster

    def _is_gone(self, deleted: TopicResult) -> bool:
        assert deleted.name is not None
        present_id = self._metadata_cache.topic_id(deleted.name)
        return (
            not self._metadata_cache.topic_partitions(deleted.name)
            or present_id != deleted.topic_id
        )

    def _has_leaders(self, created: TopicResult) -> bool:
        assert created.name is not None
        return all(
            self._has_leader(TopicPartition(created.name, partition), created.topic_id)
            for partition in range(created.num_partitions)
        )

    def _has_leader(self, topic_partition: TopicPartition, topic_id: UUID | None) -> bool:
        state = self._metadata_cache.partition_info(topic_partition)
        return state is not None and state.topic_id == topic_id and state.leader >= 0

    def _racks(self) -> dict[int, str] | None:
        """The racks of the live brokers, None when there are none; a mixture is refused, as in Kafka."""
        brokers = self._metadata_cache.alive_brokers()
        racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
        if racks and len(racks) < len(brokers):
            without = [broker.id for broker in brokers if broker.rack is None]
            raise _RefusedError(
                ErrorCode.unknown_server_error,
                f"Brokers {without} have no rack, as the others have.",
            )
        return racks or None

    def _broker_ids(self) -> list[int]:
        return [broker.id for broker in self._metadata_cache.alive_brokers()]


def _refuse_paths(name: str) -> None:
    """Raise ``NoNodeError`` for what names no child of /brokers/topics: the znode itself, or something below or above.

    Anything else may be a topic that somebody has made in ZooKeeper, also under a name that is not allowed.
    """
    if name in ("", ".", "..") or "/" in name:
        raise NoNodeError(name)


def _unknown(name: str) -> TopicResult:
    error = ErrorCode.unknown_topic_or_partition
    return TopicResult(name, error, f"The topic '{name}' does not exist.")


def _refused(name: str, error: _RefusedError | ZooKeeperError) -> TopicResult:
    code = error.code if isinstance(error, _RefusedError) else ErrorCode.unknown_server_error
    _logger.warning("topic %r: %s: %s", name, code.name, error)
    return TopicResult(name, code, str(error))


def _checked_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    if nulls := [name for name, value in configs.items() if value is None]:
        raise _RefusedError(
            ErrorCode.invalid_config,
            f"Null value not supported for topic configs: {', '.join(nulls)}",
        )
    checked = {name: value for name, value in configs.items() if value is not None}
    try:
        validate(checked)
    except (UnknownConfigError, ConfigValueError) as error:
        raise _RefusedError(ErrorCode.invalid_config, str(error)) from None
    return checked


def _too_few_brokers(factor: int, brokers: Sequence[int]) -> _RefusedError:
    return _RefusedError(
        ErrorCode.invalid_replication_factor,
        f"Replication factor is {factor}; there are {len(brokers)} live brokers.",
    )


def _checked(
    assignment: Mapping[int, tuple[int, ...]],
    first_partition: int,
    replication_factor: int | None,
    broker_ids: Sequence[int],
) -> dict[int, ReplicaAssignment]:
    problem = assignment_problem(
        assignment,
        first_partition=first_partition,
        replication_factor=replication_factor,
        broker_ids=broker_ids,
    )
    if problem is not None:
        raise _RefusedError(ErrorCode.invalid_replica_assignment, problem)
    return {
        partition: ReplicaAssignment(tuple(replicas))
        for partition, replicas in sorted(assignment.items())
    }

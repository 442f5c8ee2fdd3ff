"""Topics that come into being because a client asked for them: for their metadata (auto.create.topics.enable), or for
the coordinator of a group or a transaction, for any value of that setting.

The controller's broker creates them itself, with the broker's defaults; any other broker forwards a CreateTopics to the
controller and lets the client ask again. A topic that is on its way is not asked for twice. Nobody waits for leaders.
Source: kafka.server.DefaultAutoTopicCreationManager of Kafka 3.9 with ZooKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import cast

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.admin_utils import topic_name_problem
from nemesis.reference.server.connection import Connection
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.zk_admin_manager import TopicSpec, ZkAdminManager

_logger = logging.getLogger(__name__)

DO_NOT_WAIT = timedelta(0)
"""The time-out of CreateTopics: the controller answers without waiting for leaders."""

_CREATED = frozenset({ErrorCode.none, ErrorCode.request_timed_out, ErrorCode.topic_already_exists})


class AutoTopicCreationManager:
    """See the module. ``connection`` is its own way to the controller."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        controller: KafkaController,
        zk_admin: ZkAdminManager,
        metadata_cache: MetadataCache,
        connection: Connection,
    ) -> None:
        self._config = config
        self._timeout_s = config.controller_socket_timeout_ms / 1000
        self._controller = controller
        self._zk_admin = zk_admin
        self._metadata_cache = metadata_cache
        self._listener_name = config.listener_config.to_controller_listener_name
        self._connection = connection
        self._inflight: dict[str, None] = {}
        self._forwarding: dict[asyncio.Task[None], None] = {}
        self._is_free = asyncio.Lock()

    async def create_topics(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Begin to create unknown topics; returns what the client is told of each, for now."""
        codes: dict[str, ErrorCode] = {}
        creatable: list[str] = []
        for name in names:
            if topic_name_problem(name, ()) is not None:
                codes[name] = ErrorCode.invalid_topic_exception
            elif name in self._inflight:
                codes[name] = ErrorCode.unknown_topic_or_partition
            else:
                creatable.append(name)
        if not creatable:
            return codes
        self._inflight.update(dict.fromkeys(creatable))
        if self._controller.is_active:
            return codes | await self._create(creatable)
        task = asyncio.create_task(self._forward(creatable), name=f"auto-create {creatable}")
        self._forwarding[task] = None
        task.add_done_callback(self._forwarding.pop)
        return codes | dict.fromkeys(creatable, ErrorCode.unknown_topic_or_partition)

    async def shutdown(self) -> None:
        """What was forwarded and not answered may come about or not."""
        for task in self._forwarding:
            task.cancel()
        await asyncio.gather(*self._forwarding, return_exceptions=True)
        await self._connection.close()

    async def _create(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        try:
            results = await self._zk_admin.create_topics(
                [_spec(name, self._config) for name in names], validate_only=False, timeout_ms=0
            )
        finally:
            self._forget(names)
        return {
            name: ErrorCode.leader_not_available if result.error in _CREATED else result.error
            for name, result in zip(names, results, strict=True)
        }

    async def _forward(self, names: Sequence[str]) -> None:
        try:
            async with self._is_free:
                await self._send(names)
        finally:
            self._forget(names)

    async def _send(self, names: Sequence[str]) -> None:
        controller = self._metadata_cache.controller_node(self._listener_name)
        if controller is None:
            _logger.info("topics %s are not created: the controller is not known", names)
            return
        try:
            response = await self._connection.send(
                controller.host,
                controller.port,
                _request([_spec(name, self._config) for name in names]),
                timeout_s=self._timeout_s,
            )
        except NetworkError as error:
            _logger.info("topics %s may not be created: %s", names, error)
            return
        for topic in response.topics:
            _logger.info("topic %s: %s", topic.name, topic.error_code.name)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._inflight.pop(name, None)


def _spec(name: str, config: KafkaConfig) -> TopicSpec:
    """The new topic: with the broker's defaults, unless a coordinator writes it."""
    if name == TRANSACTION_STATE_TOPIC_NAME:
        return TopicSpec(
            name,
            num_partitions=config.transaction_state_log_num_partitions,
            replication_factor=config.transaction_state_log_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    if name != GROUP_METADATA_TOPIC_NAME:
        return TopicSpec(name)
    return TopicSpec(
        name,
        num_partitions=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def _request(specs: Iterable[TopicSpec]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=cast("TopicName", spec.name),
                num_partitions=i32(spec.num_partitions),
                replication_factor=i16(spec.replication_factor),
                assignments=(),
                configs=tuple(
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in spec.configs.items()
                ),
            )
            for spec in specs
        ),
        timeout=cast("i32Timedelta", DO_NOT_WAIT),
    )

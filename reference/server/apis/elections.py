"""ElectLeaders and ControlledShutdown: elections that are asked of the controller.

ElectLeaders gives each partition its own answer, NOT_CONTROLLER among them; who asks for all partitions is not told of
those that needed no election. ControlledShutdown is a broker's, which is told STALE_CONTROLLER_EPOCH instead.
Source: kafka.server.KafkaApis and ReplicaManager.electLeaders; KIP-183, KIP-460.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_events import (
    ControlledShutdown,
    ElectionType,
    ReplicaLeaderElection,
)
from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH, ApiError, TopicPartition
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from nemesis.reference.server.delayed_elect_leader import DelayedElectLeader
from nemesis.reference.server.metadata_cache import MetadataCache

Results = Mapping[TopicPartition, ApiError]


class ElectionApis:
    """Needs this broker's controller, active or not; ``purgatory`` is looked at after each UpdateMetadata."""

    def __init__(
        self,
        controller: KafkaController,
        metadata_cache: MetadataCache,
        purgatory: DelayedOperationPurgatory[TopicPartition],
    ) -> None:
        self._controller = controller
        self._metadata_cache = metadata_cache
        self._purgatory = purgatory

    async def handle_elect_leaders(self, message: Any) -> Any:
        named = message.topic_partitions
        partitions = self._all_partitions() if named is None else _partitions(named)
        asked_type = int(getattr(message, "election_type", ElectionType.PREFERRED))
        if asked_type not in list(ElectionType):
            error = ApiError(ErrorCode.invalid_request, f"There is no election type {asked_type}.")
            return _elect_leaders_response(message, dict.fromkeys(partitions, error), error.code)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + milliseconds(message.timeout) / 1000
        elected = await self._controller.ask(
            ReplicaLeaderElection(tuple(partitions), ElectionType(asked_type))
        )
        results = {tp: outcome for tp, outcome in elected.items() if isinstance(outcome, ApiError)}
        expected = {
            tp: outcome for tp, outcome in elected.items() if not isinstance(outcome, ApiError)
        }
        results |= await self._until_known(expected, timeout_s=max(0.0, deadline - loop.time()))
        if named is None:
            needless = ErrorCode.election_not_needed
            results = {tp: error for tp, error in results.items() if error.code is not needless}
        return _elect_leaders_response(message, results, ErrorCode.none)

    async def handle_controlled_shutdown(self, message: Any) -> Any:
        error, remaining = await self._controller.ask(
            ControlledShutdown(
                message.broker_id, getattr(message, "broker_epoch", UNKNOWN_BROKER_EPOCH)
            )
        )
        response = response_of(message)
        partitions = ({"topic_name": tp.topic, "partition_index": tp.partition} for tp in remaining)
        return build(
            response,
            error_code=error,
            remaining_partitions=build_items(response, "remaining_partitions", partitions),
        )

    async def _until_known(
        self, expected: Mapping[TopicPartition, int], *, timeout_s: float
    ) -> Results:
        delayed = DelayedElectLeader(expected, self._metadata_cache)
        for topic_partition in expected:
            delayed.try_complete(topic_partition)
        if delayed.is_complete:
            return delayed.results()
        return await self._purgatory.watch(
            delayed, list(expected), timeout_s=timeout_s, respond=lambda results: results
        )

    def _all_partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic, partition)
            for topic in self._metadata_cache.topics()
            for partition in sorted(self._metadata_cache.topic_partitions(topic))
        ]


def _partitions(named: Any) -> list[TopicPartition]:
    """Each once, in the order of the request."""
    partitions = (TopicPartition(topic.topic, p) for topic in named for p in topic.partitions)
    return list(dict.fromkeys(partitions))


def _elect_leaders_response(message: Any, results: Results, error: ErrorCode) -> Any:
    response = response_of(message)
    topic_class = item_class(response, "replica_election_results")
    by_topic = groupby(
        sorted(results.items(), key=lambda item: item[0]), lambda item: item[0].topic
    )
    topics = (
        {
            "topic": topic,
            "partition_result": build_items(
                topic_class,
                "partition_result",
                (
                    {
                        "partition_id": tp.partition,
                        "error_code": result.code,
                        "error_message": result.message,
                    }
                    for tp, result in items
                ),
            ),
        }
        for topic, items in by_topic
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        error_code=error,
        replica_election_results=build_items(response, "replica_election_results", topics),
    )

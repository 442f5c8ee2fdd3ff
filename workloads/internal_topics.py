"""The internal topic of the groups, for workloads that were asked to change it: brokers create it on demand."""

from __future__ import annotations

import asyncio
from typing import Final

from nemesis.workloads.base import NotReadyError
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.group_requests import find_request
from nemesis.workloads.partitions import TopicPartition

OFFSETS_TOPIC: Final = "__consumer_offsets"
RETRY_INTERVAL_S: Final = 0.1
_GROUP: Final = "of-no-member"
"""Any group's coordinator will do."""


async def create_offsets_topic(client: KafkaAdmin, timeout_s: float) -> list[TopicPartition]:
    """Look for a coordinator, which creates the topic; return its partitions once all of them have leaders.

    Raises ``NotReadyError`` after ``timeout_s``. Source: KIP-98 and Kafka's ``AutoTopicCreationManager``.
    """
    try:
        async with asyncio.timeout(timeout_s):
            while not (partitions := _with_leaders(client)):
                await _look_for_coordinator(client, timeout_s)
                await asyncio.sleep(RETRY_INTERVAL_S)
                await client.refresh_metadata()
    except TimeoutError:
        raise NotReadyError(
            f"the partitions of {OFFSETS_TOPIC} did not all get leaders within {timeout_s:g} s"
        ) from None
    return partitions


async def _look_for_coordinator(client: KafkaAdmin, timeout_s: float) -> None:
    try:
        await client.ask_any(find_request(_GROUP), timeout_s)
    except KafkaError:
        return


def _with_leaders(client: KafkaAdmin) -> list[TopicPartition]:
    topic = client.metadata.topics.get(OFFSETS_TOPIC)
    partitions = [] if topic is None else [(OFFSETS_TOPIC, p) for p in sorted(topic.partitions)]
    return partitions if all(client.metadata.leader(*tp) is not None for tp in partitions) else []

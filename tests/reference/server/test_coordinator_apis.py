"""FindCoordinator, in every version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
    Broker,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.coordinators import CoordinatorApis
from nemesis.reference.server.metadata_cache import MetadataCache
from tests.reference.server.answers import answered

PARTITIONS = 4
GROUP = "g"
NUMBER = partition_for(GROUP, PARTITIONS)
LEADER, DEAD = 2, 3
VERSIONS = range(OFFERED[ApiKey.FIND_COORDINATOR].highest + 1)


class TopicCreation:
    """Records the topics that are to be created."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def create_topics(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        self.names += names
        return {}


def partition(topic: str, number: int, leader: int) -> UpdateMetadataPartitionState:
    key = TopicPartition(topic, number)
    return UpdateMetadataPartitionState(key, UUID(int=7), 1, leader, 0, (leader,), 0, (leader,))


def apis(creation: TopicCreation, *, leader: int | None) -> CoordinatorApis:
    """Brokers 1 and 2 are alive; ``leader`` leads the group's partition, None: the topic does not exist."""
    cache = MetadataCache(1)
    states = (
        []
        if leader is None
        else [
            partition(topic, n, leader if n == NUMBER else 1)
            for topic in (GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME)
            for n in range(PARTITIONS)
        ]
    )
    cache.update(1, 1, [Broker.at(1, "a", 91), Broker.at(LEADER, "b", 92)], states)
    return CoordinatorApis(cache, creation)  # type: ignore[arg-type]


def find(
    version: int, *, leader: int | None = LEADER, key_type: int = 0
) -> tuple[Any, TopicCreation]:
    """Return the answer for the group, and the topics that are created."""
    creation = TopicCreation()
    request = build(
        load_request_schema(ApiKey.FIND_COORDINATOR, version),
        key=GROUP,
        key_type=key_type,
        coordinator_keys=(GROUP,),
    )

    async def ask() -> Any:
        return await answered(apis(creation, leader=leader).handle_find_coordinator(request))

    response = asyncio.run(ask())
    decoded = decode_response(
        encode_response(response, correlation_id=1)[SIZE_BYTES:], type(response)
    )[1]
    if version < 4:
        return decoded, creation
    assert decoded.coordinators[0].key == GROUP
    return decoded.coordinators[0], creation


@pytest.mark.parametrize("version", VERSIONS)
def test_the_leader_of_the_groups_partition_coordinates_it(version: int) -> None:
    answer, creation = find(version)
    assert answer.error_code is ErrorCode.none
    assert (answer.node_id, answer.host, answer.port) == (LEADER, "b", 92)
    assert creation.names == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_client_has_the_topic_created(version: int) -> None:
    answer, creation = find(version, leader=None)
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert creation.names == [GROUP_METADATA_TOPIC_NAME]


@pytest.mark.parametrize("leader", [DEAD, -1])
def test_without_a_leader_no_broker_coordinates_the_group(leader: int) -> None:
    answer, creation = find(6, leader=leader)
    assert (answer.error_code, answer.node_id) == (ErrorCode.coordinator_not_available, -1)
    assert creation.names == []


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_transactions_have_a_coordinator_and_a_topic_of_their_own(version: int) -> None:
    answer, creation = find(version, key_type=1, leader=None)
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert creation.names == [TRANSACTION_STATE_TOPIC_NAME]
    answer, creation = find(version, key_type=1)
    assert (answer.error_code, answer.node_id) == (ErrorCode.none, LEADER)
    assert creation.names == []


def test_what_has_no_coordinator_here() -> None:
    share = ErrorCode.coordinator_not_available
    errors = {
        (version, key_type): find(version, key_type=key_type)[0].error_code
        for version, key_type in ((5, 2), (6, 2), (6, 9))
    }
    assert errors == {
        (5, 2): ErrorCode.invalid_request,
        (6, 2): share,
        (6, 9): ErrorCode.invalid_request,
    }

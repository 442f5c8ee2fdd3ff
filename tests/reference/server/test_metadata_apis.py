"""Metadata and ApiVersions, in the versions where their meaning changes."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.model import Broker, TopicPartition, UpdateMetadataPartitionState
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.metadata import MetadataApis
from nemesis.reference.server.metadata_cache import MetadataCache

TOPIC_ID = UUID(int=7)
LAST_METADATA = OFFERED[ApiKey.METADATA].highest


def apis() -> MetadataApis:
    """Brokers 1 and 2 alive; t-0 led by 2, t-1 by the dead 3; the controller is 1."""
    cache = MetadataCache(1)
    cache.update(
        1,
        4,
        [Broker.at(1, "a", 91), Broker.at(2, "b", 92, rack="r")],
        [partition(0, leader=2), partition(1, leader=3)],
    )
    return MetadataApis(cache, "cluster")


def partition(number: int, leader: int) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        topic_partition=TopicPartition("t", number),
        topic_id=TOPIC_ID,
        controller_epoch=4,
        leader=leader,
        leader_epoch=6,
        isr=(leader,),
        partition_epoch=2,
        replicas=(2, 3),
    )


@pytest.mark.parametrize("version", [0, 1])
def test_the_cluster_is_described_in_every_version(version: int) -> None:
    request = build(
        load_request_schema(ApiKey.DESCRIBE_CLUSTER, version),
        include_cluster_authorized_operations=False,
    )
    response = apis().handle_describe_cluster(request)
    frame = encode_response(response, correlation_id=1)
    answer = decode_response(frame[SIZE_BYTES:], type(response))[1]
    assert answer.error_code is ErrorCode.none
    assert (answer.cluster_id, answer.controller_id) == ("cluster", 1)
    brokers = [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers]
    assert brokers == [(1, "a", 91, None), (2, "b", 92, "r")]


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, ErrorCode.mismatched_endpoint_type), (3, ErrorCode.unsupported_endpoint_type)],
)
def test_a_broker_describes_no_other_end_points(endpoint_type: int, error: ErrorCode) -> None:
    request = build(
        load_request_schema(ApiKey.DESCRIBE_CLUSTER, 1),
        include_cluster_authorized_operations=False,
        endpoint_type=endpoint_type,
    )
    answer = apis().handle_describe_cluster(request)
    assert answer.error_code is error
    assert answer.brokers == ()


def ask(version: int, topics: list[dict[str, Any]] | None) -> Any:
    """The answer of ``apis`` to a Metadata request, after a trip over the wire."""
    schema = load_request_schema(ApiKey.METADATA, version)
    asked = None if topics is None else build_items(schema, "topics", topics)
    request = build(
        schema,
        topics=asked,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    response = apis().handle_metadata(request)
    frame = encode_response(response, correlation_id=1)
    _, decoded = decode_response(frame[SIZE_BYTES:], type(response))
    return decoded


def names(response: Any) -> list[str]:
    return [topic.name for topic in response.topics]


@pytest.mark.parametrize("version", range(LAST_METADATA + 1))
def test_metadata_of_a_named_topic_in_every_version(version: int) -> None:
    response = ask(version, [{"name": "t", "topic_id": None}])

    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(1, "a", 91), (2, "b", 92)]
    (topic,) = response.topics
    assert topic.error_code is ErrorCode.none
    assert [
        (p.partition_index, p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes)
        for p in topic.partitions
    ] == [
        (0, ErrorCode.none, 2, (2, 3), (2,)),
        (1, ErrorCode.leader_not_available, -1, (2, 3), (3,)),
    ]


def test_newer_versions_tell_controller_cluster_rack_epoch_and_offline_replicas() -> None:
    response = ask(LAST_METADATA, [{"name": "t", "topic_id": None}])

    assert (response.controller_id, response.cluster_id) == (1, "cluster")
    assert [broker.rack for broker in response.brokers] == [None, "r"]
    (topic,) = response.topics
    assert topic.topic_id == TOPIC_ID
    assert topic.partitions[0].leader_epoch == 6
    assert topic.partitions[0].offline_replicas == (3,)


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [(0, [], ["t"]), (1, None, ["t"]), (1, [], []), (12, None, ["t"]), (12, [], [])],
)
def test_all_topics_is_empty_in_version_0_and_null_later(
    version: int, topics: list[dict[str, Any]] | None, expected: list[str]
) -> None:
    assert names(ask(version, topics)) == expected


def test_an_unknown_name_is_an_error_of_that_topic_alone() -> None:
    response = ask(12, [{"name": "u", "topic_id": None}, {"name": "t", "topic_id": None}])

    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("u", ErrorCode.unknown_topic_or_partition),
        ("t", ErrorCode.none),
    ]


class Creation:
    """Takes every name and says LEADER_NOT_AVAILABLE of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def create_topics(self, names: list[str]) -> dict[str, ErrorCode]:
        self.asked += names
        return dict.fromkeys(names, ErrorCode.leader_not_available)


@pytest.mark.parametrize("version", range(LAST_METADATA + 1))
@pytest.mark.parametrize("allowed", [True, False])
def test_unknown_names_are_created_if_the_request_allows_it(version: int, *, allowed: bool) -> None:
    creation: Any = Creation()
    schema = load_request_schema(ApiKey.METADATA, version)
    items = [{"name": name, "topic_id": None} for name in ("t", "u", "u")]
    request = build(
        schema,
        topics=build_items(schema, "topics", items),
        allow_auto_topic_creation=allowed,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    answer: Any = MetadataApis(apis()._metadata_cache, "cluster", creation).handle_metadata(request)
    is_created = allowed or version < 4
    response = asyncio.run(answer) if is_created else answer
    assert creation.asked == (["u"] if is_created else [])
    errors = {topic.name: topic.error_code for topic in response.topics}
    unknown = ErrorCode.unknown_topic_or_partition
    assert errors == {"t": ErrorCode.none, "u": ErrorCode.leader_not_available if is_created else unknown}  # fmt: skip


def test_a_topic_may_be_asked_for_by_id_alone() -> None:
    response = ask(12, [{"name": None, "topic_id": TOPIC_ID}])

    assert names(response) == ["t"]


def test_an_unknown_id_is_answered_with_that_id() -> None:
    (topic,) = ask(12, [{"name": None, "topic_id": UUID(int=9)}]).topics

    assert (topic.error_code, topic.topic_id) == (ErrorCode.unknown_topic_id, UUID(int=9))


@pytest.mark.parametrize("version", [10, 11, 12])
def test_an_id_without_a_name_is_answered_whatever_the_version(version: int) -> None:
    response = ask(version, [{"name": None, "topic_id": UUID(int=9)}])

    assert response.topics[0].error_code is ErrorCode.unknown_topic_id
    encode_response(response, correlation_id=1)


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.API_VERSIONS].highest + 1))
def test_api_versions_lists_what_is_offered(version: int) -> None:
    request = build(
        load_request_schema(ApiKey.API_VERSIONS, version),
        client_software_name="c",
        client_software_version="1",
    )

    response = apis().handle_api_versions(request)

    assert response.error_code is ErrorCode.none
    assert {a.api_key: (a.min_version, a.max_version) for a in response.api_keys} == {
        int(key): (versions.lowest, versions.highest) for key, versions in OFFERED.items()
    }

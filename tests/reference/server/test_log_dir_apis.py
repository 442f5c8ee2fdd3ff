"""DescribeLogDirs and AlterReplicaLogDirs over real log directories, in every offered version."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.log_dirs import LogDirApis
from tests.reference.log.batches import assigned, batch
from tests.reference.log.log_managers import A0, A1, B0, ID, manager

VERSIONS = range(OFFERED[ApiKey.DESCRIBE_LOG_DIRS].highest + 1)


def describe(logs: LogManager, asked: list[TopicPartition] | None, version: int = 4) -> Any:
    """Ask a broker without replicas; returns the response as a client would see it."""
    schema = load_request_schema(ApiKey.DESCRIBE_LOG_DIRS, version)
    topics = None
    if asked is not None:
        items = ({"topic": tp.topic, "partitions": (tp.partition,)} for tp in asked)
        topics = build_items(schema, "topics", items)
    apis = LogDirApis(logs, alter=lambda _: {}, on_storage_error=_raised)
    return described(apis.handle_describe_log_dirs(build(schema, topics=topics)))


def _raised(error: KafkaStorageError) -> None:
    raise error


def described(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def replica_lags(response: Any) -> dict[str, tuple[ErrorCode, list[tuple[str, int, int]]]]:
    """Log directory → its error, and (topic, partition, bytes) of its logs."""
    return {
        Path(result.log_dir).name: (
            result.error_code,
            [
                (t.name, p.partition_index, p.partition_size)
                for t in result.topics
                for p in t.partitions
            ],
        )
        for result in response.results
    }


@pytest.fixture
def logs(tmp_path: Path) -> LogManager:
    """a-0 and b-c.d_e-0 in one directory, a-1 in the other."""
    log_manager = manager(tmp_path / "one", tmp_path / "two")
    for topic_partition in (A0, A1, B0):
        log_manager.get_or_create_log(topic_partition, ID, is_new=True)
    log_manager.all_logs()[A1].append_as_leader(batch(2), 0)
    return log_manager


@pytest.mark.parametrize("version", VERSIONS)
def test_every_log_is_told_of(logs: LogManager, version: int) -> None:
    size = logs.all_logs()[A1].size_in_bytes
    assert size > 0
    assert replica_lags(describe(logs, None, version)) == {
        "one": (ErrorCode.none, [("a", 0, 0), ("b-c.d_e", 0, 0)]),
        "two": (ErrorCode.none, [("a", 1, size)]),
    }


def test_only_what_is_asked_for_is_told_of(logs: LogManager) -> None:
    absent = TopicPartition("absent", 0)
    assert replica_lags(describe(logs, [B0, absent])) == {
        "one": (ErrorCode.none, [("b-c.d_e", 0, 0)]),
        "two": (ErrorCode.none, []),
    }


def test_what_was_deleted_is_gone_and_an_offline_directory_says_so(
    logs: LogManager, tmp_path: Path
) -> None:
    logs.delete_log(A0)
    logs.handle_log_dir_failure(str(tmp_path / "two"))
    assert replica_lags(describe(logs, None)) == {
        "one": (ErrorCode.none, [("b-c.d_e", 0, 0)]),
        "two": (ErrorCode.kafka_storage_error, []),
    }


def test_a_future_log_is_told_of_with_its_lag_and_the_volume_with_its_size(
    logs: LogManager, tmp_path: Path
) -> None:
    future = logs.create_future_log(A1, str(tmp_path / "one"))
    future.append_as_follower(assigned(batch(1), 0, 0))
    response = describe(logs, [A1])
    (first, two) = response.results
    lags = [
        (p.is_future_key, p.offset_lag)
        for result in (first, two)
        for topic in result.topics
        for p in topic.partitions
    ]
    assert lags == [(True, 1), (False, 0)]
    usage = shutil.disk_usage(tmp_path)
    assert first.total_bytes == two.total_bytes == usage.total
    assert 0 < first.usable_bytes <= usage.total


def test_the_lag_of_a_future_log_whose_replica_is_offline_is_not_known(
    logs: LogManager, tmp_path: Path
) -> None:
    logs.create_future_log(A1, str(tmp_path / "one"))
    logs.handle_log_dir_failure(str(tmp_path / "two"))
    (partition,) = describe(logs, [A1]).results[0].topics[0].partitions
    assert partition.offset_lag == -1


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.ALTER_REPLICA_LOG_DIRS].highest + 1))
def test_replicas_are_moved_in_every_version(logs: LogManager, version: int) -> None:
    """Several directories and topics in one request; each partition has an answer of its own."""
    asked: list[dict[TopicPartition, str]] = []
    codes = {A0: ErrorCode.none, A1: ErrorCode.log_dir_not_found, B0: ErrorCode.none}

    def alter(targets: Mapping[TopicPartition, str]) -> dict[TopicPartition, ErrorCode]:
        asked.append(dict(targets))
        return codes

    schema = load_request_schema(ApiKey.ALTER_REPLICA_LOG_DIRS, version)
    dir_class = item_class(schema, "dirs")
    dirs = (
        {
            "path": path,
            "topics": build_items(
                dir_class,
                "topics",
                ({"name": tp.topic, "partitions": (tp.partition,)} for tp in tps),
            ),
        }
        for path, tps in (("/x", [A0, B0]), ("/y", [A1]))
    )
    apis = LogDirApis(logs, alter=alter, on_storage_error=_raised)
    request = build(schema, dirs=build_items(schema, "dirs", dirs))
    response = described(apis.handle_alter_replica_log_dirs(request))
    assert asked == [{A0: "/x", B0: "/x", A1: "/y"}]
    assert {
        TopicPartition(topic.topic_name, p.partition_index): p.error_code
        for topic in response.results
        for p in topic.partitions
    } == codes

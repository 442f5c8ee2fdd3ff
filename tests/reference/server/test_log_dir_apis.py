"""DescribeLogDirs over real log directories, in every offered version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from reference.log.log_manager import LogManager
from reference.model import TopicPartition
from reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from reference.protocol.schema import build, build_items
from reference.protocol.versions import OFFERED, ApiKey
from reference.server.apis.log_dirs import LogDirApis
from tests.reference.log.batches import batch
from tests.reference.log.test_log_manager import A0, A1, B0, ID, manager

VERSIONS = range(OFFERED[ApiKey.DESCRIBE_LOG_DIRS].highest + 1)


def describe(logs: LogManager, asked: list[TopicPartition] | None, version: int = 4) -> Any:
    """Ask; returns the response as a client would see it."""
    schema = load_request_schema(ApiKey.DESCRIBE_LOG_DIRS, version)
    topics = None
    if asked is not None:
        items = ({"topic": tp.topic, "partitions": (tp.partition,)} for tp in asked)
        topics = build_items(schema, "topics", items)
    response = LogDirApis(logs).handle_describe_log_dirs(build(schema, topics=topics))
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def told(response: Any) -> dict[str, tuple[ErrorCode, list[tuple[str, int, int]]]]:
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
    found = manager(tmp_path / "one", tmp_path / "two")
    for topic_partition in (A0, A1, B0):
        found.get_or_create_log(topic_partition, ID, is_new=True)
    found.all_logs()[A1].append_as_leader(batch(2), 0)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_log_is_told_of(logs: LogManager, version: int) -> None:
    size = logs.all_logs()[A1].size_in_bytes
    assert size > 0
    assert told(describe(logs, None, version)) == {
        "one": (ErrorCode.none, [("a", 0, 0), ("b-c.d_e", 0, 0)]),
        "two": (ErrorCode.none, [("a", 1, size)]),
    }


def test_only_what_is_asked_for_is_told_of(logs: LogManager) -> None:
    absent = TopicPartition("absent", 0)
    assert told(describe(logs, [B0, absent])) == {
        "one": (ErrorCode.none, [("b-c.d_e", 0, 0)]),
        "two": (ErrorCode.none, []),
    }


def test_what_was_deleted_is_gone_and_an_offline_directory_says_so(
    logs: LogManager, tmp_path: Path
) -> None:
    logs.delete_log(A0)
    logs.handle_log_dir_failure(str(tmp_path / "two"))
    assert told(describe(logs, None)) == {
        "one": (ErrorCode.none, [("b-c.d_e", 0, 0)]),
        "two": (ErrorCode.kafka_storage_error, []),
    }

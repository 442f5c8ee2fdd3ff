"""Kafka's own kafka-dump-log reads what the reference writes: batches, records, both indexes, producers' snapshots."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.workloads.kafka.record_batch import Producer, build
from tests.e2e.kafka_tools import needs_kafka_tools, run_tool
from tests.reference.log.batches import with_codec
from tests.reference.log.logs import TP, open_log
from tests.reference.log.stored_records import held

pytestmark = [pytest.mark.e2e, needs_kafka_tools]

BATCHES = 300


def dump(*arguments: str) -> str:
    """What kafka-dump-log prints; it says what is wrong there, and ends well all the same."""
    return run_tool("kafka.tools.DumpLogSegments", *arguments)


def written(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    """The batches and the indexes of a log of several segments, with times that also fall."""
    log = open_log(tmp_path, segment_bytes=100_000)
    for number in range(BATCHES):
        stamp_ms = 1_700_000_000_000 + number * 10 + number * 37 % 500
        records: list[tuple[bytes | None, bytes | None]]
        records = [(f"key-{number}".encode(), b"v" * 900), (None, b"w" * 300)]
        log.append_as_leader(build(records, stamp_ms), number // 100)
    log.close()
    directory = tmp_path / "t-0"
    return sorted(directory.glob("*.log")), sorted(directory.glob("*index"))


def compacting(tmp_path: Path) -> LogManager:
    """The logs of a broker that compacts."""
    config = KafkaConfig.from_properties(
        {
            "broker.id": 1,
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": [str(tmp_path)],
            "log.segment.bytes": 20_000,
            "log.index.interval.bytes": 500,
            "log.cleanup.policy": ["compact"],
        }
    )
    logs = LogManager(config, RealDisk(), wall_clock=lambda: 1_700_000_900_000)
    logs.load_logs()
    return logs


def log_at(tmp_path: Path) -> Log:
    """The log as a broker finds it."""
    log = compacting(tmp_path).get_log(TP)
    assert log is not None
    return log


def test_kafka_reads_every_record(tmp_path: Path) -> None:
    logs, _ = written(tmp_path)
    assert len(logs) > 2
    text = dump("--print-data-log", "--files", ",".join(map(str, logs)))
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", text, re.MULTILINE)]
    assert offsets == list(range(2 * BATCHES))
    assert "isvalid: false" not in text
    assert f"payload: {'v' * 900}" in text


def test_kafka_finds_no_fault_with_the_indexes(tmp_path: Path) -> None:
    logs, indexes = written(tmp_path)
    files = ",".join(map(str, indexes))
    text = dump("--index-sanity-check", "--files", files)
    assert text.count("passed sanity check") == len(indexes) == 2 * len(logs)
    text = dump("--files", files)
    assert len(re.findall(r"^offset: \d+ position: \d+", text, re.MULTILINE)) > 50
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", text, re.MULTILINE)) > 30
    for complaint in ("Mismatches", "mismatch", "out of order", "not found"):
        assert complaint not in text


def test_kafka_would_find_a_fault(tmp_path: Path) -> None:
    """A time that no record has: the test above sees something."""
    _, indexes = written(tmp_path)
    index = next(path for path in indexes if path.suffix == ".timeindex")
    data = bytearray(index.read_bytes())
    data[7] ^= 1
    index.write_bytes(data)
    assert "timestamp mismatch" in dump("--files", str(index))


@pytest.mark.parametrize("codec", range(5))
def test_kafka_reads_what_a_cleaner_has_left(tmp_path: Path, codec: int) -> None:
    """Batches with fewer records, emptied ones, delete horizons, and the indexes of such segments."""
    stamp_ms = 1_700_000_000_000
    logs = compacting(tmp_path)
    log = logs.get_or_create_log(TP, None, is_new=True)
    for number in range(BATCHES):
        key = f"once-{number}" if number % 10 == 0 else f"key-{number % 40}"
        keyed: list[tuple[bytes | None, bytes | None]]
        keyed = [
            (b"often", b"v" * 400),
            (key.encode(), b"w" * 300),
            (b"gone", None),
        ]
        batch = with_codec(build(keyed, stamp_ms + number, Producer(7, 0, 3 * number)), codec)
        log.append_as_leader(batch, number // 100)
    log.update_high_watermark(log.log_end_offset)
    assert asyncio.run(logs.cleaner.clean_filthiest_log())
    logs.close()
    segments = sorted((tmp_path / "t-0").glob("*.log"))
    text = dump("--print-data-log", "--deep-iteration", "--files", ",".join(map(str, segments)))
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", text, re.MULTILINE)]
    left = held(log_at(tmp_path))
    assert offsets == [record.offset for record in left]
    assert len(offsets) < 2 * BATCHES
    assert "isvalid: false" not in text
    assert "deleteHorizonMs: OptionalLong[" in text
    indexes = sorted((tmp_path / "t-0").glob("*index"))
    checked = dump("--index-sanity-check", "--files", ",".join(map(str, indexes)))
    assert checked.count("passed sanity check") + checked.count(".index is empty") == len(indexes)
    assert len(indexes) == 2 * len(segments)
    text = dump("--files", ",".join(map(str, indexes)))
    for complaint in ("Mismatches", "mismatch", "out of order", "not found"):
        assert complaint not in text


def test_kafka_reads_the_snapshots_of_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    stamp_ms = 1_700_000_000_000
    records: list[tuple[bytes | None, bytes | None]] = [(None, b"v")] * 3
    for producer in (Producer(7, 0, 0), Producer(8, 2, 5), Producer(7, 0, 3)):
        log.append_as_leader(build(records, stamp_ms, producer), 0)
    log.close()
    text = dump("--files", str(tmp_path / "t-0" / f"{9:020d}.snapshot"))
    entries = re.findall(
        r"producerId: (\d+) producerEpoch: (\d+) .*?lastTimestamp: (\d+) .*?"
        r"lastSequence: (\d+) lastOffset: (\d+) offsetDelta: (\d+)",
        text,
    )
    assert sorted(tuple(map(int, entry)) for entry in entries) == [
        (7, 0, stamp_ms, 5, 8, 2),
        (8, 2, stamp_ms, 7, 5, 2),
    ], text


def test_kafka_reads_the_markers_of_transactions(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    stamp_ms = 1_700_000_000_000
    for control_type, coordinator_epoch in (
        (ControlRecordType.COMMIT, 3),
        (ControlRecordType.ABORT, 4),
    ):
        marker = EndTransactionMarker(control_type, coordinator_epoch)
        batch = end_transaction_batch(7, 1, marker, stamp_ms)
        log.append_as_leader(batch, 0, AppendOrigin.COORDINATOR)
    log.close()
    text = dump("--print-data-log", "--files", str(tmp_path / "t-0" / f"{0:020d}.log"))
    assert text.count("producerId: 7 producerEpoch: 1") == 2
    assert text.count("isTransactional: true isControl: true") == 2
    assert "isvalid: false" not in text
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", text) == [
        ("COMMIT", "3"),
        ("ABORT", "4"),
    ]

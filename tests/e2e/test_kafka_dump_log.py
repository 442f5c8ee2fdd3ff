"""Kafka's own kafka-dump-log reads what the reference writes: batches, records, both indexes, producers' snapshots."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference.log.test_log import open_log
from workloads.kafka.record_batch import Producer, build

TOOLS = Path(sys.prefix) / "kafka-tools"
JAVA = ("java", "-Xmx256m", "-cp", f"{TOOLS}/*", "kafka.tools.DumpLogSegments")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not TOOLS.is_dir(), reason="Kafka's tools are missing: run .ci/install --tests with Maven"
    ),
]

BATCHES = 300


def dump(*arguments: str) -> str:
    """What kafka-dump-log prints; it says what is wrong there, and ends well all the same."""
    command = [*JAVA, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout + done.stderr


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


def test_kafka_reads_the_snapshots_of_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    stamp_ms = 1_700_000_000_000
    records: list[tuple[bytes | None, bytes | None]] = [(None, b"v")] * 3
    for producer in (Producer(7, 0, 0), Producer(8, 2, 5), Producer(7, 0, 3)):
        log.append_as_leader(build(records, stamp_ms, producer), 0)
    log.close()
    text = dump("--files", str(tmp_path / "t-0" / f"{9:020d}.snapshot"))
    found = re.findall(
        r"producerId: (\d+) producerEpoch: (\d+) .*?lastTimestamp: (\d+) .*?"
        r"lastSequence: (\d+) lastOffset: (\d+) offsetDelta: (\d+)",
        text,
    )
    assert sorted(tuple(map(int, one)) for one in found) == [
        (7, 0, stamp_ms, 5, 8, 2),
        (8, 2, stamp_ms, 7, 5, 2),
    ], text

"""A log manager over directories of the test, and the partitions that tests give it."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import Tracer
from tests.reference.log.batches import NOW_MS

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b-c.d_e", 0)


ID, OTHER_ID = UUID(int=7), UUID(int=8)


def manager(
    *log_dirs: Path,
    disk: RealDisk | None = None,
    load: bool = True,
    tracer: Tracer | None = None,
) -> LogManager:
    config = KafkaConfig.from_properties(
        {
            "broker.id": 1,
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": [str(path) for path in log_dirs],
        }
    )
    result = LogManager(config, disk or RealDisk(), wall_clock=lambda: NOW_MS, tracer=tracer)
    if load:
        result.load_logs()
    return result

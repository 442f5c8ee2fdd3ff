"""One partition on broker 1, with a real log, a clock that stands still, and a controller that is the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.partition_reads import fetch_records
from nemesis.reference.cluster.partition_state import AlterPartitionCallback, AlterPartitionItem
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import (
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    TopicPartition,
)
from nemesis.reference.trace import Kind
from tests.reference.log.batches import NOW_MS

TP = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)
LAG_S = 30.0


@dataclass
class Trace:
    """Events as (kind, columns)."""

    events: list[tuple[Kind, dict[str, Any]]] = field(default_factory=list)

    def event(self, kind: Kind, /, **columns: Any) -> None:
        self.events.append((kind, columns))

    def kinds(self) -> list[Kind]:
        return [kind for kind, _ in self.events]

    def of(self, kind: Kind) -> list[dict[str, Any]]:
        return [columns for event_kind, columns in self.events if event_kind is kind]


@dataclass
class Proposals:
    """What the leader asked of the controller; the test answers."""

    sent: list[tuple[AlterPartitionItem, AlterPartitionCallback]] = field(default_factory=list)
    busy: bool = False

    def submit(self, item: AlterPartitionItem, callback: AlterPartitionCallback) -> bool:
        if not self.busy:
            self.sent.append((item, callback))
        return not self.busy

    @property
    def isrs(self) -> list[list[int]]:
        return [[broker for broker, _ in item.new_isr] for item, _ in self.sent]

    def answer(self, error: ErrorCode = ErrorCode.none, **changes: Any) -> None:
        """Answer the last proposal: done, with the next partition epoch, or refused."""
        item, callback = self.sent[-1]
        if error is not ErrorCode.none:
            callback(error, None)
            return
        values: dict[str, Any] = {
            "leader": 1,
            "leader_epoch": item.leader_epoch,
            "isr": tuple(broker for broker, _ in item.new_isr),
            "partition_epoch": item.partition_epoch + 1,
        }
        callback(ErrorCode.none, LeaderAndIsr(**(values | changes)))


def config(directory: Path, broker_id: int = 1, **properties: Any) -> KafkaConfig:
    values: dict[str, Any] = {
        "broker.id": broker_id,
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "zookeeper.connect": "127.0.0.1:2181",
        "log.dirs": [str(directory)],
        "min.insync.replicas": 1,
        "replica.lag.time.max.ms": int(LAG_S * 1000),
    }
    values |= {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaConfig.from_properties(values | {"log.dirs": tuple(values["log.dirs"])})


def log_manager(settings: KafkaConfig) -> LogManager:
    manager = LogManager(settings, RealDisk(), wall_clock=lambda: NOW_MS)
    manager.load_logs()
    return manager


def lisr(
    leader: int = 1,
    leader_epoch: int = 0,
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    partition_epoch: int | None = None,
    replicas: tuple[int, ...] = (1, 2, 3),
    topic_id: UUID | None = TOPIC_ID,
    topic_partition: TopicPartition = TP,
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        topic_partition=topic_partition,
        topic_id=topic_id,
        controller_epoch=1,
        leader_and_isr=LeaderAndIsr(
            leader,
            leader_epoch,
            isr,
            partition_epoch=leader_epoch * 10 if partition_epoch is None else partition_epoch,
        ),
        replicas=replicas,
        is_new=leader_epoch == 0,
    )


class Host:
    """A partition and all that it depends on."""

    def __init__(self, directory: Path, **properties: Any) -> None:
        self.config = config(directory, **properties)
        self.trace = Trace()
        self.proposals = Proposals()
        self.alive = {1, 2, 3}
        self.now = 1000.0
        self.progress = 0
        self.partition = Partition(
            TP,
            config=self.config,
            tracer=self.trace,
            log_manager=log_manager(self.config),
            alter_partition=self.proposals,
            is_alive=self.alive.__contains__,
            broker_epoch=lambda: 101,
            clock=lambda: self.now,
            on_progress=self._on_progress,
        )

    def _on_progress(self, topic_partition: TopicPartition) -> None:
        assert topic_partition == TP
        self.progress += 1

    @property
    def high_watermark(self) -> int:
        assert self.partition.log is not None
        return self.partition.log.high_watermark

    @property
    def end_offset(self) -> int:
        assert self.partition.log is not None
        return self.partition.log.log_end_offset

    def fetch(self, broker: int, offset: int, *, epoch: int = -1, last_epoch: int = -1) -> Any:
        """A fetch of follower ``broker`` at ``offset``."""
        return fetch_records(
            self.partition,
            FetchParams(broker, 0, 1, 1 << 20, FetchIsolation.LOG_END, 100 + broker),
            FetchPartitionRequest(TP, TOPIC_ID, epoch, offset, last_epoch, 0, 1 << 20),
            max_bytes=1 << 20,
            min_one_message=True,
            update_fetch_state=True,
        )

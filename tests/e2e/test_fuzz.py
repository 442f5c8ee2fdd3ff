"""A live broker is fed frames that no client sends. It neither dies, hangs nor grows, and another client goes on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.e2e.hostile_frames import hostile_frames
from tests.e2e.onlooker import until_complete
from tests.reference.conftest import zookeeper_address, zookeeper_server
from tests.reference.free_port import HOST, free_port
from tests.reference.log.batches import batch

__all__ = ["zookeeper_address", "zookeeper_server"]  # fixtures

pytestmark = pytest.mark.e2e

SEED = 6

CONNECTIONS = 16
PATIENCE_S = 0.25
"""How long a frame is waited for: one that asks the broker to wait gets no answer sooner."""
WARM_UP_FRAMES = 4_000
MOST_GROWTH_BYTES = 48 << 20
PAUSE_S = 0.02
DEADLINE_S = 30.0


class Broker:
    """One broker process, alone, with a topic that the frames name and one that they do not."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.port = free_port()
        self.log = directory / "log"
        config = directory / "config.json"
        config.write_text(
            json.dumps(
                {
                    "broker.id": 1,
                    "listeners": f"PLAINTEXT://{HOST}:{self.port}",
                    "zookeeper.connect": zookeeper,
                    "zookeeper.session.timeout.ms": 6_000,
                    "log.dirs": [str(directory / "data")],
                    "socket.request.max.bytes": 2_000_000,
                }
            )
        )
        (directory / "data").mkdir()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nemesis.reference", str(config)], stderr=log
            )
        self.client = {"bootstrap.servers": f"{HOST}:{self.port}"}

    def create_topics(self) -> None:
        until_complete(self.client["bootstrap.servers"])
        admin = AdminClient(self.client)
        topics = [NewTopic("t", 4, 1), NewTopic("kept", 1, 1)]
        for created in admin.create_topics(topics, operation_timeout=DEADLINE_S).values():
            created.result(DEADLINE_S)

    def resident_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)


@pytest.fixture
def broker(tmp_path: Path, zookeeper_address: str) -> Iterator[Broker]:
    broker = Broker(tmp_path, zookeeper_address)
    try:
        broker.create_topics()
        yield broker
    finally:
        broker.process.kill()
        broker.process.wait()


class Attacker:
    """Sends frames over one connection after the other, each after what the one before has come to."""

    def __init__(self, broker: Broker, frames: Iterator[bytes], outcomes: Counter[str]) -> None:
        self._broker = broker
        self._frames = frames
        self._outcomes = outcomes
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def attack(self) -> None:
        for frame in self._frames:
            outcome = await self._send(frame)
            self._outcomes[outcome] += 1
            if outcome != "answered":
                await self.close()
        await self.close()

    async def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream[1].transport.abort()

    async def _send(self, frame: bytes) -> str:
        if self._stream is None:
            self._stream = await asyncio.open_connection(HOST, self._broker.port)
        reader, writer = self._stream
        writer.write(frame)
        try:
            async with asyncio.timeout(PATIENCE_S):
                size = int.from_bytes(await reader.readexactly(4), "big")
                await reader.readexactly(size)
        except TimeoutError:
            return "silent"
        except (asyncio.IncompleteReadError, ConnectionError):
            return "closed"
        return "answered"


class Bystander:
    """A client that means well, all the while."""

    def __init__(self, broker: Broker) -> None:
        self._client = broker.client
        self._producer = Producer(
            self._client | {"acks": "all", "message.timeout.ms": int(DEADLINE_S * 1000)}
        )
        self.failures: list[str] = []
        self.acknowledged: list[str] = []
        self.slowest_s = 0.0

    async def produce(self) -> None:
        number = 0
        while True:
            self._produce(str(number))
            number += 1
            self._producer.poll(0)
            await asyncio.sleep(PAUSE_S)

    def finish(self) -> list[str]:
        """What is in the topic at the end."""
        assert self._producer.flush(DEADLINE_S) == 0
        consumer = Consumer(self._client | {"group.id": "none", "enable.auto.commit": False})
        consumer.assign([TopicPartition("kept", 0, 0)])
        records: list[str] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(records) < len(self.acknowledged):
            assert time.monotonic() < deadline, f"{len(records)} of {len(self.acknowledged)} read"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                records.append((message.value() or b"").decode())
        consumer.close()
        return records

    def _produce(self, value: str) -> None:
        began = time.monotonic()

        def delivered(error: object, _message: object) -> None:
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            if error is None:
                self.acknowledged.append(value)
            else:
                self.failures.append(str(error))

        self._producer.produce("kept", value, partition=0, on_delivery=delivered)


def taken(frames: Iterator[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield next(frames)


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(20_000, id="short"),
        pytest.param(100_000, id="long", marks=[pytest.mark.nightly, pytest.mark.timeout(900)]),
    ],
)
def test_frames_that_no_client_sends_harm_nobody(broker: Broker, count: int) -> None:
    outcomes: Counter[str] = Counter()
    frames = hostile_frames(SEED, batch(2))
    bystander = Bystander(broker)

    async def attack(number: int) -> None:
        shared = taken(frames, number)
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(Attacker(broker, shared, outcomes).attack())

    async def scenario() -> int:
        producing = asyncio.create_task(bystander.produce())
        await attack(WARM_UP_FRAMES)
        before = broker.resident_bytes()
        await attack(count - WARM_UP_FRAMES)
        growth = broker.resident_bytes() - before
        producing.cancel()
        return growth

    growth = asyncio.run(scenario())

    assert broker.process.poll() is None, "the broker has died"
    wrong = [
        line
        for line in broker.log.read_text(errors="replace").splitlines()
        if " ERROR " in line or " CRITICAL " in line or line.startswith("Traceback")
    ]
    assert wrong == []
    assert outcomes.total() == count
    assert outcomes["answered"] > count / 5, outcomes
    assert outcomes["closed"] > count / 5, outcomes
    assert outcomes["silent"] < count / 20, outcomes
    assert growth < MOST_GROWTH_BYTES
    assert bystander.failures == []
    records = bystander.finish()
    assert len(records) > 50
    assert sorted(records) == sorted(bystander.acknowledged)
    assert bystander.slowest_s < DEADLINE_S / 3

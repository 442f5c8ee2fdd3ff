"""What a stranger sees of a cluster: ZooKeeper past every link, and the brokers through a client that is not ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

BOUND_S = 30.0


class Watcher:
    """What ZooKeeper says, past every link."""

    def __init__(self, connect: str) -> None:
        self._client = KazooClient(hosts=connect)
        self._client.start(timeout=BOUND_S)

    def registered(self) -> set[int]:
        return {int(name) for name in self._client.get_children("/brokers/ids")}

    def controller(self) -> int | None:
        try:
            return int(json.loads(self._client.get("/controller")[0])["brokerid"])
        except NoNodeError:
            return None

    def leader(self, topic: str) -> int:
        return int(self._state(topic)["leader"])

    def isr(self, topic: str) -> set[int]:
        return set(self._state(topic)["isr"])

    def _state(self, topic: str) -> dict[str, Any]:
        path = f"/brokers/topics/{topic}/partitions/0/state"
        state: dict[str, Any] = json.loads(self._client.get(path)[0])
        return state

    def registration_times_ms(self, broker: int) -> tuple[int, int]:
        """Return when a broker registered, as it says itself and as ZooKeeper says."""
        data, stat = self._client.get(f"/brokers/ids/{broker}")
        return int(json.loads(data)["timestamp"]), int(stat.ctime)

    def creation_time_ms(self, path: str) -> int:
        """Create a znode; return when, as ZooKeeper says."""
        self._client.create(path)
        return int(self._client.get(path)[1].ctime)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.05)

    def close(self) -> None:
        self._client.stop()
        self._client.close()


def create_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    futures = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=3)])
    futures[topic].result(timeout=BOUND_S)


def produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "1"})
    producer.produce(topic, b"value")
    assert producer.flush(BOUND_S) == 0

"""What a stranger sees of a cluster: ZooKeeper past every link, and the brokers through a client that is not ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import FETCH_API_KEY, Link
from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import supported
from tests.e2e.command import wait_until

BOUND_S = 30.0
ASK_S = 2.0
PROBE_TIMEOUT_S = 5.0
SILENCE_S = 0.5
OFTEN = {"max_tries": -1, "max_delay": 0.5}
"""kazoo by itself waits longer each time, soon longer than a session lives."""


class Watcher:
    """What ZooKeeper says, past every link."""

    def __init__(self, connect: str) -> None:
        self._client = KazooClient(
            hosts=connect,
            connection_retry=OFTEN,
            command_retry={**OFTEN, "deadline": BOUND_S},
        )
        self._client.start(timeout=BOUND_S)

    def registered(self) -> set[int]:
        return {int(name) for name in self._client.retry(self._client.get_children, "/brokers/ids")}

    def controller(self) -> int | None:
        try:
            return int(json.loads(self._get("/controller")[0])["brokerid"])
        except NoNodeError:
            return None

    def leader(self, topic: str, partition: int = 0) -> int:
        return int(self._state(topic, partition)["leader"])

    def isr(self, topic: str) -> set[int]:
        return set(self._state(topic)["isr"])

    def _state(self, topic: str, partition: int = 0) -> dict[str, Any]:
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        state: dict[str, Any] = json.loads(self._get(path)[0])
        return state

    def registration_times_ms(self, broker: int) -> tuple[int, int]:
        """Return when a broker registered, as it says itself and as ZooKeeper says."""
        data, stat = self._get(f"/brokers/ids/{broker}")
        return int(json.loads(data)["timestamp"]), int(stat.ctime)

    def creation_time_ms(self, path: str) -> int:
        """Create a znode; return when, as ZooKeeper says."""
        self._client.create(path)
        return int(self._get(path)[1].ctime)

    def _get(self, path: str) -> Any:
        """Content and status of a znode, whatever becomes of the connection and the session meanwhile."""
        return self._client.retry(self._client.get, path)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.05)

    def close(self) -> None:
        self._client.stop()
        self._client.close()


def brokers_known(address: str) -> dict[int, str]:
    """Return the hosts of the brokers that one of them tells of."""
    try:
        brokers = AdminClient({"bootstrap.servers": address}).list_topics(timeout=ASK_S).brokers
    except KafkaException:
        return {}  # an answer without brokers: librdkafka takes it for an error
    return {number: broker.host for number, broker in brokers.items()}


def until_complete(bootstrap: str) -> None:
    """Return once each broker tells of all of them.

    A broker answers before the controller has told it of anybody, as Kafka's does. librdkafka 2.16 does not ask again
    after such an answer: its administrative requests wait for a controller until they time out.
    """
    addresses = bootstrap.split(",")
    wait_until(
        lambda: all(len(brokers_known(address)) == len(addresses) for address in addresses),
        "every broker telling of all",
        within_s=BOUND_S,
    )


def create_topic(bootstrap: str, topic: str) -> None:
    until_complete(bootstrap)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    futures = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=3)])
    futures[topic].result(timeout=BOUND_S)


def produce(bootstrap: str, topic: str, value: bytes = b"value") -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "1"})
    producer.produce(topic, value)
    assert producer.flush(BOUND_S) == 0


async def stall_a_follower(runtime: Runtime, watcher: Watcher) -> None:
    """Only its fetches get no further: it leaves the ISR once it lacks a record, yet answers and stays registered."""
    servers = ",".join(map(str, bootstrap(runtime.cluster)))
    await asyncio.to_thread(create_topic, servers, "stalled")
    await watcher.until(lambda: watcher.isr("stalled") == {1, 2, 3})
    leader = await asyncio.to_thread(watcher.leader, "stalled")
    follower = next(broker for broker in (1, 2, 3) if broker != leader)
    link = Link(f"broker-{follower}", f"broker-{leader}", FETCH_API_KEY)
    await supported(runtime.network).cut(frozenset({link}))
    await asyncio.to_thread(produce, servers, "stalled")
    await watcher.until(lambda: follower not in watcher.isr("stalled"))
    assert (await supported(runtime.network).counters(frozenset({link})))[link].held_bytes > 0
    assert await asyncio.to_thread(watcher.registered) == {1, 2, 3}
    assert await supported(runtime.network).probe(
        link.source, link.target, timeout_s=PROBE_TIMEOUT_S
    )
    await supported(runtime.network).restore(frozenset({link}))
    await watcher.until(lambda: watcher.isr("stalled") == {1, 2, 3})


async def join_and_leave(runtime: Runtime, watcher: Watcher) -> None:
    """A broker that has joined has links as any other; one that has left is nobody's any more."""
    assert (await supported(supported(runtime.processes).membership).add_broker("broker-4"))[
        "answered"
    ]
    await watcher.until(lambda: watcher.registered() == {1, 2, 3, 4})
    assert runtime.cluster.brokers == [f"broker-{number}" for number in (1, 2, 3, 4)]
    link = frozenset({Link("broker-4", "broker-1")})
    await supported(runtime.network).cut(link)
    assert not await supported(runtime.network).probe("broker-4", "broker-1", timeout_s=SILENCE_S)
    assert await supported(runtime.network).probe("client-1", "broker-4", timeout_s=PROBE_TIMEOUT_S)
    assert (
        sum(
            count.held_bytes for count in (await supported(runtime.network).counters(link)).values()
        )
        > 0
    )
    await supported(runtime.network).restore(link)
    assert await supported(runtime.network).probe("broker-4", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    with pytest.raises(RuntimeFailure, match="broker-4 cannot be retired: it is running"):
        supported(supported(runtime.processes).membership).retire("broker-4")
    await supported(runtime.processes).terminate("broker-4", grace_s=5.0)
    supported(supported(runtime.processes).membership).retire("broker-4")
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})
    assert runtime.cluster.brokers == [f"broker-{number}" for number in (1, 2, 3)]
    with pytest.raises(RuntimeFailure, match="the next broker is broker-5"):
        await supported(supported(runtime.processes).membership).add_broker("broker-4")

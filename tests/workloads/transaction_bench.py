"""A simulated cluster of three brokers with a topic, a transactional producer and readers of committed records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

from nemesis.faults.base import FaultContext
from nemesis.interfaces.cluster import bootstrap
from nemesis.simulation.clock import EPOCH_MS
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.fetches import FetchSession
from nemesis.workloads.kafka.poll_answers import Polled
from nemesis.workloads.kafka.transactional_producer import TransactionalProducer
from tests.nemesis.faults.simulated_cluster import create_topic, in_cluster

ID = "payments"
TOPIC, PARTITIONS = "t", 3
TPS = [(TOPIC, number) for number in range(PARTITIONS)]

REQUEST_S, DELIVERY_S = 1.0, 12.0


class Bench:
    """A cluster with a topic, and clients for it."""

    def __init__(self, context: FaultContext) -> None:
        self.context = context
        self._clients: list[KafkaClient] = []

    def client(self) -> KafkaClient:
        cluster = self.context.runtime.cluster
        client = KafkaClient(
            [(address.host, address.port) for address in bootstrap(cluster)],
            client_id="test",
            source_host=cluster.client_host(cluster.clients[0]),
            rng=Random(len(self._clients)),
            codec=cluster.codec,
            epoch_ms=EPOCH_MS,
        )
        self._clients.append(client)
        return client

    async def producer(self, *, delivery_s: float = DELIVERY_S) -> TransactionalProducer:
        """Return a producer that is ready."""
        client = self.client()
        await client.refresh_metadata()
        made = TransactionalProducer(
            client,
            ID,
            request_timeout_s=REQUEST_S,
            delivery_timeout_s=delivery_s,
            transaction_timeout_ms=60_000,
        )
        assert not made.is_ready
        await made.initialize()
        return made

    async def read(self, *, is_committed: bool) -> dict[int, list[str]]:
        """Return the values of each partition."""
        return {
            number: [
                (record.value or b"").decode()
                for record in (await self.poll(number, is_committed=is_committed)).records
            ]
            for number in range(PARTITIONS)
        }

    async def poll(self, number: int, *, is_committed: bool) -> Polled:
        client = self.client()
        await client.refresh_metadata()
        leader = client.metadata.leader(TOPIC, number)
        assert leader is not None
        polled = await client.poll_partitions(
            {(TOPIC, number): 0},
            node=leader,
            session=FetchSession(is_kept=False, is_committed=is_committed),
            max_wait_ms=100,
            max_bytes=1_000_000,
            timeout_s=REQUEST_S,
        )
        outcome = polled[TOPIC, number]
        assert isinstance(outcome, Polled)
        return outcome

    def close(self) -> None:
        for client in self._clients:
            client.close()


def on_bench(test: Callable[[Bench], Awaitable[None]]) -> None:
    async def scene(context: FaultContext) -> None:
        await create_topic(context)
        bench = Bench(context)
        try:
            await test(bench)
        finally:
            bench.close()

    in_cluster(scene)


async def write(producer: TransactionalProducer, value: str) -> list[int]:
    """Write the value to each partition; return the offsets."""
    await producer.add_partitions(TPS)
    return [
        (await producer.send(topic, number, [(None, value.encode())])).offset
        for topic, number in TPS
    ]

"""Makes the clients of a workload's processes, each with a source host and a random generator of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Final, TypeVar

from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.frames import Traffic
from nemesis.workloads.kafka.idempotent_producer import IdempotentProducer
from nemesis.workloads.partitions import TopicPartition
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions

LAST_EPOCH: Final = 1
"""Then an idempotent producer asks for a new producer id, as Kafka's does after 32,767: ids are wanted amid faults."""
_Client = TypeVar("_Client", bound=KafkaClient)


class Clients:
    """Clients take the hosts of the context in turn. ``traffic_of`` counts what a process does, by its name."""

    def __init__(
        self,
        context: WorkloadContext,
        options: ProduceConsumeOptions,
        traffic_of: Callable[[str], Traffic],
    ) -> None:
        self._context = context
        self._options = options
        self._traffic_of = traffic_of
        self._made = 0

    @property
    def timeout_s(self) -> float:
        """The time-out of one operation."""
        return self._options.operation_timeout_ms / 1000

    def client(self, process: str) -> KafkaClient:
        """Return a new client for producing and consuming."""
        return self._connected(KafkaClient, process)

    def admin(self, process: str) -> KafkaAdmin:
        """Return a new client for administration."""
        return self._connected(KafkaAdmin, process)

    def idempotent(self, client: KafkaClient) -> IdempotentProducer:
        """Return an idempotent producer on a client."""
        return IdempotentProducer(
            client,
            request_timeout_s=self.timeout_s,
            delivery_timeout_s=self._options.delivery_timeout_ms / 1000,
            max_epoch=LAST_EPOCH,
        )

    def rng(self) -> Random:
        """Return a new generator, seeded from the run's."""
        return Random(self._context.rng.getrandbits(64))

    def _connected(self, kind: type[_Client], process: str) -> _Client:
        hosts = self._context.client_hosts
        host = hosts[self._made % len(hosts)]
        self._made += 1
        return kind(
            self._context.bootstrap,
            client_id=process,
            source_host=host,
            rng=self.rng(),
            codec=self._context.codec,
            epoch_ms=self._context.epoch_ms,
            traffic=self._traffic_of(process),
        )


async def find_leader(client: KafkaClient, tp: TopicPartition) -> bool:
    """Refresh the metadata; return whether it names a leader of the partition."""
    if not await client.refresh_metadata():
        await asyncio.sleep(0.05)
    return client.metadata.leader(*tp) is not None

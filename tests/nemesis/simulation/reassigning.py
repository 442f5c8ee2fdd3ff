"""produce-consume while somebody moves replicas about, takes some moves back, and replaces others that still go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import MappingProxyType
from unittest.mock import patch

from workloads import WORKLOADS
from workloads.kafka.admin import KafkaAdmin
from workloads.kafka.errors import KafkaError
from workloads.produce_consume import ProduceConsume

NAME = "reassigning"
INTERVAL_S = 1.2
CHANGE_OF_MIND = 0.4
"""How often a move is replaced or cancelled soon after it has been asked for."""


class Reassigning(ProduceConsume):
    """One more process; what it asks for is drawn from the seed."""

    begun = 0
    """Moves that the last run of this process has begun."""
    cancelled = 0

    def start(self) -> None:
        type(self).begun = type(self).cancelled = 0
        super().start()
        self._spawn("mover", self._move())

    async def _move(self) -> None:
        client, rng = self._admin("mover"), self._rng()
        try:
            while True:
                await asyncio.sleep(INTERVAL_S)
                if not await client.refresh_metadata() or not self._partitions:
                    continue
                partition = rng.choice(self._partitions)
                await self._ask(client, partition, self._target(client, rng))
                if rng.random() < CHANGE_OF_MIND:
                    await asyncio.sleep(rng.uniform(0.005, 0.3))
                    target = None if rng.random() < 0.5 else self._target(client, rng)
                    await self._ask(client, partition, target)
        finally:
            client.close()

    def _target(self, client: KafkaAdmin, rng: Random) -> tuple[int, ...]:
        brokers = sorted(client.metadata.brokers)
        return tuple(rng.sample(brokers, k=min(rng.randint(2, 3), len(brokers))))

    async def _ask(
        self, client: KafkaAdmin, partition: tuple[str, int], target: tuple[int, ...] | None
    ) -> None:
        try:
            await client.reassign(*partition, target, timeout_s=1)
        except KafkaError:
            return
        if target is None:
            type(self).cancelled += 1
        else:
            type(self).begun += 1


@contextmanager
def reassigning() -> Iterator[type[Reassigning]]:
    """Let scenarios of this process name the workload ``reassigning``."""
    known = MappingProxyType({**WORKLOADS, NAME: Reassigning})
    with patch("nemesis.run.WORKLOADS", known), patch("nemesis.scenario.WORKLOADS", known):
        yield Reassigning

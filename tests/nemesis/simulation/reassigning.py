"""produce-consume while somebody moves replicas about, takes some moves back, and replaces others that still go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from unittest.mock import patch

from workloads import WORKLOADS
from workloads.kafka.errors import KafkaError
from workloads.produce_consume import ProduceConsume

NAME = "reassigning"
INTERVAL_S = 1.2


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
        client, rng = self._client("mover"), self._rng()
        try:
            while True:
                await asyncio.sleep(INTERVAL_S)
                if not await client.refresh_metadata() or not self._partitions:
                    continue
                brokers = sorted(client.metadata.brokers)
                size = rng.randint(2, 3)
                target = (
                    None
                    if rng.random() < 0.2
                    else tuple(rng.sample(brokers, k=min(size, len(brokers))))
                )
                try:
                    await client.reassign(*rng.choice(self._partitions), target, timeout_s=1)
                except KafkaError:
                    continue
                if target is None:
                    type(self).cancelled += 1
                else:
                    type(self).begun += 1
        finally:
            client.close()


@contextmanager
def reassigning() -> Iterator[type[Reassigning]]:
    """Let scenarios of this process name the workload ``reassigning``."""
    known = MappingProxyType({**WORKLOADS, NAME: Reassigning})
    with patch("nemesis.run.WORKLOADS", known), patch("nemesis.scenario.WORKLOADS", known):
        yield Reassigning

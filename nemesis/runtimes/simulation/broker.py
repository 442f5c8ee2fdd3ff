"""A reference broker as a node of a simulation: what ``nemesis.reference.__main__`` is to a process.

Disk and wall clock belong to the node and outlive its lives; session, tracer and randomness are those of one
incarnation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from nemesis.reference.exception_trace import traced_exceptions
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.protocol.codec import Codec
from nemesis.reference.server.kafka_server import STARTUP_ERRORS, KafkaServer
from nemesis.reference.trace import Kind
from nemesis.simulation.clock import SimulatedWallClock
from nemesis.simulation.disk import SimulatedDisk
from nemesis.simulation.incarnation import INCARNATION
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.zookeeper.client import SimulatedZooKeeperClient

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SimulatedBroker:
    """What a broker's node is made of."""

    name: str
    properties: Mapping[str, object]
    """Complete and validated, under Kafka's names."""
    disk: SimulatedDisk
    clock: SimulatedWallClock
    record: MemoryRecord
    codec: Codec
    random: Callable[[str], Random]
    """A stream by its name."""

    async def main(self) -> None:
        """One incarnation: start, and serve until something ends it from outside, or its last log directory has failed.

        A cancellation is SIGTERM: the broker stops in order. Raises what a start raises, and SystemExit.
        """
        incarnation = INCARNATION.get()
        assert incarnation is not None, "a broker lives on a node"
        config = KafkaConfig.from_properties(dict(self.properties))
        tracer = self.record.tracer(self.name, config.broker_id, incarnation)
        server = KafkaServer(
            config,
            disk=self.disk.fenced(incarnation),
            zookeeper=SimulatedZooKeeperClient(
                config.zookeeper_connect,
                config.zookeeper_session_timeout_ms,
                config.source_host,
                self.random(f"{self.name}/{incarnation.number}/zookeeper"),
            ),
            tracer=tracer,
            rng=self.random(f"{self.name}/{incarnation.number}"),
            wall_clock=self.clock,
            codec=self.codec,
        )
        with traced_exceptions(
            tracer,
            STARTUP_ERRORS,
            is_own=lambda: INCARNATION.get() is incarnation,
            on_death=incarnation.on_death,
        ):
            try:
                await server.startup()
                tracer.event(Kind.EXCEPTIONS_WATCHED)
                logger.info("broker %s listens on %s", config.broker_id, config.listeners)
                await server.await_failure()
            except asyncio.CancelledError:
                logger.info("broker %s was told to stop", config.broker_id)
                await server.controlled_shutdown()
                await server.shutdown()
            else:
                raise SystemExit(1)

"""Two nodes with the reference's own network code, broken in several ways; ``python -m`` prints the events.

One node serves, one asks for ApiVersions again and again; the link between them is held and delayed, the server is
paused, killed and started again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from kio.schema.api_versions.v0.request import ApiVersionsRequest

from nemesis.interfaces.links import Link
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.network.network_client import BrokerConnection
from nemesis.reference.network.processor import unsupported_api_versions
from nemesis.reference.network.socket_server import SocketServer
from nemesis.reference.protocol.codec import Request
from nemesis.reference.server.client_quota_manager import QuotaManagers
from nemesis.reference.server.kafka_request_handler import KafkaRequestHandlerPool
from nemesis.simulation.guard import real_world_forbidden
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.network import Network
from nemesis.simulation.node import Node
from nemesis.simulation.randomness import stream

SERVER, CLIENT, PORT = "10.0.0.1", "10.0.0.2", 9092
THERE = Link("client", "server")
BACK = Link("server", "client")


class Answers:
    """Answers ApiVersions after a while."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def handle(self, request: Request, _listener_name: str, _client_host: str) -> Any:
        self._events.note(f"server handles {request.correlation_id}")
        await asyncio.sleep(0.002)
        return unsupported_api_versions()

    def waits(self, request: Request) -> bool:
        return False


class Events:
    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self.noted: list[tuple[int, str]] = []

    def note(self, label: str) -> None:
        self.noted.append((self._loop.clock_ns(), label))


async def serve(events: Events) -> None:
    server = SocketServer(
        KafkaConfig.from_properties(
            {
                "listeners": f"PLAINTEXT://{SERVER}:{PORT}",
                "zookeeper.connect": "unused",
                "log.dirs": ["unused"],
            }
        )
    )
    pool = KafkaRequestHandlerPool(
        server.data_plane_request_channel,
        Answers(events),
        name="data-plane",
        num_threads=2,
        quotas=QuotaManagers(),
    )
    pool.start()
    await server.startup()
    events.note("server listens")
    await asyncio.sleep(1e6)


async def ask(events: Events, name: str) -> None:
    connection = BrokerConnection(
        client_id=name, source_address=(CLIENT, 0), max_response_bytes=100_000
    )
    request = ApiVersionsRequest()
    while True:
        try:
            answer = await connection.send(SERVER, PORT, request, timeout_s=0.5)
            events.note(f"{name} hears of {len(answer.api_keys)} keys")
        except NetworkError as error:
            events.note(f"{name} fails: {error} definite={error.definite}")
        await asyncio.sleep(0.1)


async def ask_twice(events: Events) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(events, "one"))
        group.create_task(ask(events, "two"))


async def trouble(events: Events, network: Network, server: Node) -> None:
    async def strike(after_s: float, label: str, *acts: Callable[[], object]) -> None:
        await asyncio.sleep(after_s)
        for act in acts:
            act()
        events.note(f"nemesis: {label}")

    await strike(2, "hold requests", lambda: network.hold([THERE]))
    await strike(2, "release", lambda: network.release([THERE]))
    await strike(1, "hold replies", lambda: network.hold([BACK]))
    await strike(0.7, "release", lambda: network.release([BACK]))
    await strike(1, "pause", server.pause)
    await strike(2, "resume", server.resume)
    await strike(1, "delay", lambda: network.delay([BACK], 0.2))
    await strike(1, "reset", lambda: network.delay([BACK], 0.0), lambda: network.reset([THERE]))
    await strike(1, "kill", server.kill)
    await strike(1, "start", lambda: server.start(lambda: serve(events)))
    await asyncio.sleep(2)


def run(seed: int) -> list[tuple[int, str]]:
    """What happened, with virtual nanoseconds."""
    loop = SimulationLoop(Schedule(seed, deviation_rate=0.05))
    network = Network(loop, stream(seed, "network"))
    network.register(SERVER, "server", speaks_kafka=True)
    network.register(CLIENT, "client")
    events = Events(loop)
    server = Node(loop, "server", SERVER)
    server.start(lambda: serve(events))
    Node(loop, "client", CLIENT).start(lambda: ask_twice(events))
    try:
        with real_world_forbidden():
            loop.run_until_complete(trouble(events, network, server))
        events.note(f"{loop.deviations} deviations")
        return events.noted
    finally:
        loop.close()


if __name__ == "__main__":
    for moment, what in run(int(sys.argv[1])):
        print(moment, what)

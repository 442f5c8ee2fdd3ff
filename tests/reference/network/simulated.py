"""A SocketServer on the simulated network, in virtual time, and clients that send raw frames."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Self

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v0.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v0.response import FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.network.request_channel import PendingRequest
from nemesis.reference.network.socket_server import SocketServer
from nemesis.reference.protocol import codec
from nemesis.reference.protocol.codec import SIZE_BYTES
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.network import Network
from nemesis.simulation.randomness import stream

HOST, PORT, OTHER_PORT = "10.0.0.1", 9092, 9093


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test on a simulated loop; a minute of waiting costs nothing."""
    loop = SimulationLoop(Schedule(1))
    Network(loop, stream(1, "network"))
    try:
        loop.run_until_complete(test())
    finally:
        loop.close()


def configured(**properties: Any) -> KafkaConfig:
    """One listener unless ``listeners`` says otherwise."""
    values: dict[str, Any] = {
        "listeners": f"PLAINTEXT://{HOST}:{PORT}",
        "zookeeper.connect": "unused",
        "log.dirs": ["unused"],
    }
    values |= {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaConfig.from_properties(values)


class Served:
    """A server whose requests wait in the queues until the test takes them."""

    def __init__(self, **properties: Any) -> None:
        self.server = SocketServer(configured(**properties))
        self._clients: list[Client] = []

    async def __aenter__(self) -> Self:
        await self.server.startup()
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        await self.server.shutdown()
        await asyncio.sleep(1.0)

    async def connect(self, port: int = PORT, host: str = "10.0.0.9") -> Client:
        """A client that is connected, though the server may have yet to let it in."""
        client = Client(*await asyncio.open_connection(HOST, port, local_addr=(host, 0)))
        self._clients.append(client)
        return client

    async def next_request(self) -> PendingRequest:
        """The next one of the data plane."""
        return await self.server.data_plane_request_channel.receive_request()

    def answer(self, pending: PendingRequest) -> None:
        self.server.data_plane_request_channel.send_response(
            pending, response_to(pending.request.message)
        )


class Client:
    """A connection that sends FindCoordinator requests without waiting for their answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def ask(self, key: str, correlation_id: int = 1) -> None:
        request = FindCoordinatorRequest(key=key)
        self._writer.write(
            codec.encode_request(request, correlation_id=correlation_id, client_id="c")
        )

    async def answer(self) -> int | None:
        """The correlation id of the next answer; None when the connection has ended instead."""
        try:
            size = struct.unpack(">i", await self._reader.readexactly(SIZE_BYTES))[0]
            frame = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return int(struct.unpack_from(">i", frame)[0])

    def close(self) -> None:
        self._writer.close()


def response_to(message: Any) -> FindCoordinatorResponse:
    """An answer: the key's length as node id."""
    return FindCoordinatorResponse(
        error_code=ErrorCode.none,
        node_id=BrokerId(len(message.key)),
        host="",
        port=i32(0),
    )

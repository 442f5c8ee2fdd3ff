"""SocketServer, RequestChannel and BrokerConnection over real sockets on the loopback device."""

from __future__ import annotations

import asyncio
import socket as system
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.api_versions.v0.request import ApiVersionsRequest as ApiVersionsRequestV0
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v0.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v0.response import FindCoordinatorResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId
from kio.schema.update_metadata.v8.request import UpdateMetadataRequest
from kio.schema.update_metadata.v8.response import UpdateMetadataResponse
from kio.static.primitive import i32, i32Timedelta

from nemesis.reference.adapters.sockets import RealSocketBuffers
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.network.errors import (
    CloseConnectionError,
    NetworkError,
    RequestTimedOutError,
)
from nemesis.reference.network.frames import READ_AHEAD_BYTES
from nemesis.reference.network.network_client import BrokerConnection
from nemesis.reference.network.socket_server import SocketServer
from nemesis.reference.protocol.codec import SIZE_BYTES, Request, decode_response
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.client_quota_manager import QuotaManagers
from nemesis.reference.server.kafka_request_handler import KafkaRequestHandlerPool

HOST = "127.0.0.1"
MAX_BYTES = 10_000


class Handler:
    """Answers FindCoordinator with the key's length as node id; keys with a meaning do what they say."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.handled: list[str] = []
        self.listeners: list[str] = []
        self.waiting = 0

    def waits(self, request: Request) -> bool:
        return request.api_key == ApiKey.METADATA

    def handle(self, request: Request, listener_name: str, _client_host: str) -> Any:
        self.listeners.append(listener_name)
        if request.api_key == ApiKey.UPDATE_METADATA:
            return UpdateMetadataResponse(error_code=ErrorCode.none)
        if request.api_key == ApiKey.METADATA:
            return self._answer_at_release()
        key: str = request.message.key
        self.handled.append(key)
        key, _, later = key.partition(" ")
        return self._answer_later(key) if later or key == "hold" else self._answer(key)

    async def _answer_at_release(self) -> MetadataResponse:
        self.waiting += 1
        await self.release.wait()
        return METADATA

    async def _answer_later(self, key: str) -> FindCoordinatorResponse | None:
        if key == "hold":
            await self.release.wait()
        return self._answer(key)

    def _answer(self, key: str) -> FindCoordinatorResponse | None:
        if key == "close":
            raise CloseConnectionError("asked for")
        if key == "bug":
            raise RuntimeError("a bug of ours")
        if key == "silent":
            return None
        return FindCoordinatorResponse(
            error_code=ErrorCode.none, node_id=BrokerId(len(key)), host="", port=i32(0)
        )


METADATA = MetadataResponse(throttle_time=i32Timedelta.parse(timedelta(0)), brokers=(), topics=())
UPDATE_METADATA = UpdateMetadataRequest(
    controller_id=BrokerId(1), controller_epoch=i32(1), topic_states=(), live_brokers=()
)


def ask(key: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=key)


class Cluster:
    """A server and connections to it."""

    def __init__(self, handler: Handler, server: SocketServer, ports: dict[str, int]) -> None:
        self.handler = handler
        self.server = server
        self.ports = ports
        self.port = ports["PLAINTEXT"]
        self.connections: list[BrokerConnection] = []

    def connection(self) -> BrokerConnection:
        connection = BrokerConnection(
            client_id="test", source_address=(HOST, 0), max_response_bytes=MAX_BYTES
        )
        self.connections.append(connection)
        return connection

    async def send(
        self,
        connection: BrokerConnection,
        request: Any,
        timeout_s: float = 5,
        listener: str = "PLAINTEXT",
    ) -> Any:
        return await connection.send(HOST, self.ports[listener], request, timeout_s=timeout_s)

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of which nothing is asked yet."""
        return await asyncio.open_connection(HOST, self.port)


@asynccontextmanager
async def serving(*, threads: int = 2, **properties: Any) -> AsyncIterator[Cluster]:
    handler = Handler()
    server = SocketServer(configured(**properties))
    pools = [
        KafkaRequestHandlerPool(
            channel, handler, name="", num_threads=number, quotas=QuotaManagers()
        )
        for channel, number in (
            (server.data_plane_request_channel, threads),
            (server.control_plane_request_channel, 1),
        )
    ]
    for pool in pools:
        pool.start()
    cluster = Cluster(handler, server, await server.startup())
    try:
        yield cluster
    finally:
        for connection in cluster.connections:
            await connection.close()
        await server.shutdown()
        for pool in pools:
            await pool.shutdown()


def configured(**properties: Any) -> KafkaConfig:
    values = {
        "listeners": f"PLAINTEXT://{HOST}:0",
        "zookeeper.connect": "unused",
        "log.dirs": ["unused"],
        "socket.request.max.bytes": MAX_BYTES,
    }
    values |= {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaConfig.from_properties(values)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


async def exchange(port: int, sent: bytes) -> bytes:
    """What the server says to raw bytes until it closes (or until we half-close)."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(sent)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_requests_of_one_connection_are_answered_in_order() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            connection = cluster.connection()
            answers = [await cluster.send(connection, ask("x" * n)) for n in range(5)]
            assert [answer.node_id for answer in answers] == [0, 1, 2, 3, 4]

    run(scenario)


def test_a_waiting_request_occupies_no_handler() -> None:
    async def scenario() -> None:
        async with serving(threads=1) as cluster:
            waiting = asyncio.create_task(
                cluster.send(
                    cluster.connection(),
                    MetadataRequest(topics=None, include_topic_authorized_operations=False),
                )
            )
            answer = await cluster.send(cluster.connection(), ask("abc"))
            assert answer.node_id == 3
            assert not waiting.done()
            cluster.handler.release.set()
            assert await waiting == METADATA

    run(scenario)


def test_a_control_request_does_not_wait_behind_data_requests() -> None:
    async def scenario() -> None:
        async with serving(threads=1, queued_max_requests=1) as cluster:
            blocked = [
                asyncio.create_task(cluster.send(cluster.connection(), ask("hold")))
                for _ in range(4)
            ]
            while not cluster.handler.handled:
                await asyncio.sleep(0)
            answer = await cluster.send(cluster.connection(), UPDATE_METADATA)
            assert answer.error_code is ErrorCode.none
            cluster.handler.release.set()
            assert [answer.node_id for answer in await asyncio.gather(*blocked)] == [4] * 4

    run(scenario)


def test_requests_for_which_the_queue_has_no_room_are_handled_in_the_order_of_their_arrival() -> (
    None
):
    async def scenario() -> None:
        async with serving(threads=1, queued_max_requests=1, num_network_threads=1) as cluster:
            keys = ["hold", *(str(index) for index in range(8))]
            asking = []
            for key in keys:
                connection = cluster.connection()
                await cluster.send(connection, UPDATE_METADATA)  # to be connected
                asking.append(asyncio.create_task(cluster.send(connection, ask(key))))
                await asyncio.sleep(0)
            while not cluster.handler.handled:
                await asyncio.sleep(0)
            cluster.handler.release.set()
            await asyncio.gather(*asking)
            assert cluster.handler.handled == keys

    run(scenario)


def test_a_client_that_has_gone_takes_nobody_with_it() -> None:
    async def scenario() -> None:
        async with serving(threads=1) as cluster:
            leaving = cluster.connection()
            asking = asyncio.create_task(cluster.send(leaving, ask("hold")))
            while not cluster.handler.handled:
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            cluster.handler.release.set()
            assert (await cluster.send(cluster.connection(), ask("ab"))).node_id == 2
            assert (await cluster.send(leaving, ask("abc"))).node_id == 3, "it connects anew"

    run(scenario)


def test_a_shutdown_ends_what_waits() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            request = MetadataRequest(topics=None, include_topic_authorized_operations=False)
            waiting = asyncio.create_task(cluster.send(cluster.connection(), request))
            while not cluster.handler.waiting:
                await asyncio.sleep(0)
        with pytest.raises(NetworkError) as raised:
            await waiting
        assert not raised.value.definite

    run(scenario)


@pytest.mark.parametrize("key", ["close", "bug", "close later", "bug later"])
def test_a_request_that_cannot_be_answered_closes_its_connection_only(key: str) -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            other = cluster.connection()
            await cluster.send(other, ask(""))
            with pytest.raises(NetworkError) as raised:
                await cluster.send(cluster.connection(), ask(key))
            assert not raised.value.definite
            assert (await cluster.send(other, ask("ab"))).node_id == 2

    run(scenario)


def test_a_timeout_closes_the_connection_and_the_next_request_gets_its_own_answer() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            connection = cluster.connection()
            with pytest.raises(RequestTimedOutError) as raised:
                await cluster.send(connection, ask("hold"), timeout_s=0.05)
            assert not raised.value.definite
            cluster.handler.release.set()
            assert (await cluster.send(connection, ask("ab"))).node_id == 2

    run(scenario)


def test_a_request_without_an_answer_leaves_the_connection_open() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            silent = struct.pack(">ihhih", 10 + 8, 10, 0, 1, -1) + struct.pack(">h6s", 6, b"silent")
            spoken = struct.pack(">ihhih", 10 + 3, 10, 0, 2, -1) + struct.pack(">h1s", 1, b"a")
            answer = await exchange(cluster.port, silent + spoken)
            assert struct.unpack_from(">i", answer, SIZE_BYTES) == (2,)

    run(scenario)


def test_a_client_that_sent_more_than_is_read_ahead_goes_on_when_all_of_it_is_answered() -> None:
    """While its first request is held it sends so much that it is not read on; then one more."""

    def framed(number: int, key: bytes) -> bytes:
        return struct.pack(">ihhihh", 12 + len(key), 10, 0, number, -1, len(key)) + key

    async def answered(reader: asyncio.StreamReader) -> int:
        (size,) = struct.unpack(">i", await reader.readexactly(SIZE_BYTES))
        number: int = struct.unpack_from(">i", await reader.readexactly(size))[0]
        return number

    async def scenario() -> None:
        async with serving(socket_request_max_bytes=2 * READ_AHEAD_BYTES) as cluster:
            reader, writer = await cluster.opened()
            writer.write(framed(0, b"hold"))
            while not cluster.handler.handled:
                await asyncio.sleep(0)
            long = b"x" * (READ_AHEAD_BYTES // 3)
            writer.write(b"".join(framed(number, long) for number in range(1, 5)))
            await writer.drain()
            other = cluster.connection()
            for _ in range(3):  # what was sent before has come when these are answered
                await cluster.send(other, ask("a"))
            cluster.handler.release.set()
            assert [await answered(reader) for _ in range(5)] == [0, 1, 2, 3, 4]
            writer.write(framed(5, b"more"))
            assert await answered(reader) == 5
            writer.close()
            await writer.wait_closed()

    run(scenario)


def test_nobody_listening_is_a_definite_failure() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            connection = cluster.connection()
            port = cluster.port
        with pytest.raises(NetworkError) as raised:
            await connection.send(HOST, port, ask("a"), timeout_s=5)
        assert raised.value.definite

    run(scenario)


def test_a_version_of_api_versions_that_is_not_offered_is_answered_in_version_0() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            answer = await exchange(
                cluster.port, struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 99, 7, -1)
            )
            correlation_id, response = decode_response(answer[SIZE_BYTES:], ApiVersionsResponseV0)
            assert correlation_id == 7
            assert response.error_code is ErrorCode.unsupported_version
            assert {item.api_key for item in response.api_keys} == set(OFFERED)

    run(scenario)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">i", MAX_BYTES + 1), id="too large"),
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">ihhih", 10, 999, 0, 1, -1), id="unknown API"),
        pytest.param(struct.pack(">ihhihih", 16, 3, 1, 1, -1, 2**31 - 1, -2), id="huge array"),
    ],
)
def test_a_hostile_frame_closes_its_connection_only(frame: bytes) -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            assert await exchange(cluster.port, frame) == b""
            assert (await cluster.send(cluster.connection(), ask("ab"))).node_id == 2

    run(scenario)


@settings(max_examples=25)
@given(st.lists(st.binary(max_size=60), max_size=4))
def test_random_bytes_never_stop_the_server(garbage: list[bytes]) -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            for piece in garbage:
                await exchange(cluster.port, struct.pack(">i", len(piece)) + piece)
            assert (await cluster.send(cluster.connection(), ask("ab"))).node_id == 2

    run(scenario)


def test_the_source_address_is_bound() -> None:
    async def scenario() -> None:
        peers: list[str] = []
        done = asyncio.Event()

        def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peers.append(writer.get_extra_info("peername")[0])
            writer.close()
            done.set()

        async with await asyncio.start_server(accept, HOST, 0) as server:
            connection = BrokerConnection(
                client_id="test", source_address=("127.0.0.9", 0), max_response_bytes=MAX_BYTES
            )
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(NetworkError):
                await connection.send(HOST, port, ApiVersionsRequestV0(), timeout_s=5)
            await done.wait()
        assert peers == ["127.0.0.9"]

    run(scenario)


CONTROL_PLANE: dict[str, Any] = {
    "listeners": f"PLAINTEXT://{HOST}:0,CONTROLLER://{HOST}:0",
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "control_plane_listener_name": "CONTROLLER",
}


def test_the_control_plane_has_a_listener_and_a_handler_of_its_own() -> None:
    async def scenario() -> None:
        async with serving(threads=1, queued_max_requests=1, **CONTROL_PLANE) as cluster:
            holding = asyncio.create_task(cluster.send(cluster.connection(), ask("hold")))
            while not cluster.handler.handled:
                await asyncio.sleep(0)
            control = cluster.connection()
            for request in (UPDATE_METADATA, ask("abc")):
                await cluster.send(control, request, listener="CONTROLLER")
            assert cluster.handler.listeners == ["PLAINTEXT", "CONTROLLER", "CONTROLLER"]
            cluster.handler.release.set()
            await holding

    run(scenario)


def test_a_control_request_that_comes_by_the_data_plane_goes_to_the_control_plane() -> None:
    async def scenario() -> None:
        async with serving(threads=1, queued_max_requests=1, **CONTROL_PLANE) as cluster:
            holding = asyncio.create_task(cluster.send(cluster.connection(), ask("hold")))
            while not cluster.handler.handled:
                await asyncio.sleep(0)
            await cluster.send(cluster.connection(), UPDATE_METADATA)
            cluster.handler.release.set()
            await holding

    run(scenario)


def test_every_listener_has_an_acceptor_and_processors_the_control_plane_has_one() -> None:
    async def scenario() -> None:
        async with serving(num_network_threads=4, **CONTROL_PLANE) as cluster:
            processors = {
                acceptor.end_point.listener_name: len(acceptor.processors)
                for acceptor in cluster.server.acceptors
            }
            assert processors == {"CONTROLLER": 1, "PLAINTEXT": 4}
            ids = [p.id for acceptor in cluster.server.acceptors for p in acceptor.processors]
            assert sorted(ids) == list(range(5))

    run(scenario)


def test_a_port_that_is_taken_is_told_by_an_error() -> None:
    async def scenario() -> None:
        async with serving() as cluster:
            second = SocketServer(configured(listeners=f"PLAINTEXT://{HOST}:{cluster.port}"))
            with pytest.raises(OSError, match="address already in use"):
                await second.startup()
            await second.shutdown()

    run(scenario)


def test_sockets_get_the_buffers_that_are_configured() -> None:
    class Recording:
        """Asks the kernel what it made of it (twice as much, by its manual)."""

        def __init__(self) -> None:
            self.sizes: list[tuple[str, int]] = []

        def set(self, socket: Any, *, send_bytes: int = -1, receive_bytes: int = -1) -> None:
            RealSocketBuffers().set(socket, send_bytes=send_bytes, receive_bytes=receive_bytes)
            for name, option, wanted in (
                ("send", system.SO_SNDBUF, send_bytes),
                ("receive", system.SO_RCVBUF, receive_bytes),
            ):
                if wanted >= 0:
                    self.sizes.append((name, socket.getsockopt(system.SOL_SOCKET, option)))

    async def scenario() -> None:
        buffers = Recording()
        config = configured(socket_send_buffer_bytes=30_000, socket_receive_buffer_bytes=20_000)
        server = SocketServer(config, socket_buffers=buffers)
        ports = await server.startup()
        _, writer = await asyncio.open_connection(HOST, ports["PLAINTEXT"])
        while len(buffers.sizes) < 2:
            await asyncio.sleep(0)
        assert buffers.sizes == [("receive", 40_000), ("send", 60_000)]
        writer.close()
        await writer.wait_closed()
        await server.shutdown()

    run(scenario)


@pytest.mark.parametrize("iterations", range(5))
def test_a_connection_that_is_being_accepted_at_the_shutdown_is_closed(iterations: int) -> None:
    async def scenario() -> None:
        server = SocketServer(configured())
        ports = await server.startup()
        with system.create_connection((HOST, ports["PLAINTEXT"])) as client:
            client.setblocking(False)
            for _ in range(iterations):
                await asyncio.sleep(0)
            await server.shutdown()
            with suppress(ConnectionResetError):
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""

    run(scenario)

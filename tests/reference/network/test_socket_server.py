"""SocketServer, RequestChannel and BrokerConnection over real sockets on the loopback device."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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

from reference.network.errors import NetworkError, RequestTimedOutError
from reference.network.network_client import BrokerConnection
from reference.network.request_channel import CloseConnectionError, RequestChannel
from reference.network.socket_server import ServerConnection, SocketServer
from reference.protocol import codec as wire_format
from reference.protocol.codec import SIZE_BYTES, Request, decode_response
from reference.protocol.versions import OFFERED, ApiKey

HOST = "127.0.0.1"
MAX_BYTES = 10_000


class Handler:
    """Answers FindCoordinator with the key's length as node id; keys with a meaning do what they say."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.handled: list[str] = []
        self.waiting = 0

    def waits(self, request: Request) -> bool:
        return request.api_key == ApiKey.METADATA

    def handle(self, request: Request) -> Any:
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

    def __init__(self, handler: Handler, port: int) -> None:
        self.handler = handler
        self.port = port
        self.connections: list[BrokerConnection] = []

    def connection(self) -> BrokerConnection:
        connection = BrokerConnection(
            client_id="test", source_address=(HOST, 0), max_response_bytes=MAX_BYTES
        )
        self.connections.append(connection)
        return connection

    async def send(self, connection: BrokerConnection, request: Any, timeout_s: float = 5) -> Any:
        return await connection.send(HOST, self.port, request, timeout_s=timeout_s)


@asynccontextmanager
async def serving(*, queued_max_requests: int = 10, threads: int = 2) -> AsyncIterator[Cluster]:
    handler = Handler()
    channel = RequestChannel(queued_max_requests=queued_max_requests, num_io_threads=threads)
    server = SocketServer(channel, max_request_bytes=MAX_BYTES)
    channel.start(handler)
    cluster = Cluster(handler, await server.startup(HOST, 0))
    try:
        yield cluster
    finally:
        for connection in cluster.connections:
            await connection.close()
        await server.shutdown()
        await channel.shutdown()


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
        async with serving(threads=1, queued_max_requests=1) as cluster:
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


class Receiving(asyncio.Transport):
    """Takes what a connection writes, which may well become too much for it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def resume_reading(self) -> None:
        """It was never paused."""


def test_a_client_that_does_not_take_its_answers_is_not_served_on() -> None:
    async def scenario() -> None:
        channel = RequestChannel(queued_max_requests=10, num_io_threads=1)
        channel.start(Handler())
        connection = ServerConnection(
            channel, wire_format, max_request_bytes=MAX_BYTES, connections={}
        )
        transport = Receiving()
        connection.connection_made(transport)

        async def settle() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        request = wire_format.encode_request(ask("a"), correlation_id=1, client_id="c")
        connection.pause_writing()
        connection.data_received(request * 2)
        await settle()
        assert transport.written == []
        connection.resume_writing()
        await settle()
        assert len(transport.written) == 2
        await channel.shutdown()

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

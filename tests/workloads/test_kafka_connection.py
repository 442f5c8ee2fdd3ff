"""KafkaConnection against a broker that says what it is told to, over real sockets."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kio.schema.find_coordinator.v0.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v0.response import FindCoordinatorResponse

from nemesis.reference.protocol.codec import SIZE_BYTES, encode_response
from nemesis.workloads.kafka.connection import KafkaConnection
from nemesis.workloads.kafka.errors import ConnectionFailed, RequestTimedOut

HOST = "127.0.0.1"
REQUEST = FindCoordinatorRequest(key="a")
CORRELATION_ID = struct.Struct(">4xi")
Answer = Callable[[int], bytes | None]
"""What the broker says to the request with this correlation id (the client counts from 1); None: it hangs up."""


def coordinator(correlation_id: int, node_id: int = 7) -> bytes:
    response: Any = FindCoordinatorResponse
    message = response(error_code=0, node_id=node_id, host="", port=0)
    return encode_response(message, correlation_id=correlation_id)


@asynccontextmanager
async def broker(answer: Answer) -> AsyncIterator[KafkaConnection]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(SIZE_BYTES))
                frame = await reader.readexactly(size)
                said = answer(CORRELATION_ID.unpack_from(frame)[0])
                if said is None:
                    return
                for byte in said:
                    writer.write(bytes([byte]))
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = KafkaConnection(HOST, port, client_id="c", source_host=HOST)
        try:
            yield connection
        finally:
            connection.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


def fails(answer: Answer, *, timeout_s: float = 5) -> BaseException:
    """What a request to such a broker raises."""
    failures: list[BaseException] = []

    async def scenario() -> None:
        async with broker(answer) as connection:
            with pytest.raises((ConnectionFailed, RequestTimedOut)) as raised:
                await connection.request(REQUEST, timeout_s=timeout_s)
            failures.append(raised.value)

    run(scenario)
    return failures[0]


def test_requests_are_answered_one_after_the_other() -> None:
    async def scenario() -> None:
        async with broker(lambda number: coordinator(number, node_id=number)) as connection:
            answers = [await connection.request(REQUEST, timeout_s=5) for _ in range(3)]
            assert [answer.node_id for answer in answers] == [1, 2, 3]

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        pytest.param(None, "DISCONNECTED (EOFError)", id="none"),
        pytest.param(struct.pack(">i", 64 * 1024 * 1024 + 1), "RESPONSE_TOO_LARGE", id="too large"),
        pytest.param(struct.pack(">i", -1), "RESPONSE_TOO_LARGE", id="negative size"),
        pytest.param(coordinator(99), "CORRELATION_ID_MISMATCH", id="of another request"),
        pytest.param(struct.pack(">ii", 4, 1), "DISCONNECTED (ValueError)", id="no message"),
    ],
)
def test_a_wrong_answer_is_a_failure_that_leaves_the_outcome_open(
    answer: bytes | None, name: str
) -> None:
    failure = fails(lambda _: answer)
    assert isinstance(failure, ConnectionFailed)
    assert (failure.name, failure.definite) == (name, False)


def test_half_an_answer_is_none() -> None:
    async def scenario() -> None:
        answers = [coordinator(1), coordinator(2)[:-1]]
        async with broker(lambda _: answers.pop(0) if answers else None) as connection:
            await connection.request(REQUEST, timeout_s=5)
            with pytest.raises(RequestTimedOut):
                await connection.request(REQUEST, timeout_s=0.05)

    run(scenario)


def test_no_answer_in_time_closes_the_connection() -> None:
    assert isinstance(fails(lambda _: b"", timeout_s=0.05), RequestTimedOut)


def test_a_cancelled_request_closes_the_connection() -> None:
    async def scenario() -> None:
        is_asked = asyncio.Event()

        def answer(correlation_id: int) -> bytes:
            is_asked.set()
            return coordinator(correlation_id) if correlation_id > 1 else b""

        async with broker(answer) as connection:
            asking = asyncio.create_task(connection.request(REQUEST, timeout_s=5))
            await is_asked.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (await connection.request(REQUEST, timeout_s=5)).node_id == 7

    run(scenario)


def test_what_comes_unasked_is_not_taken_for_an_answer() -> None:
    async def scenario() -> None:
        async with broker(lambda correlation_id: coordinator(correlation_id) * 2) as connection:
            await connection.request(REQUEST, timeout_s=5)
            with pytest.raises(ConnectionFailed) as raised:
                await connection.request(REQUEST, timeout_s=5)
            assert raised.value.name == "CORRELATION_ID_MISMATCH"

    run(scenario)


def test_nobody_listening_is_a_definite_failure() -> None:
    async def scenario() -> None:
        async with broker(coordinator) as connection:
            pass
        with pytest.raises(ConnectionFailed) as raised:
            await connection.request(REQUEST, timeout_s=5)
        assert (raised.value.name, raised.value.definite) == ("CONNECTION_REFUSED", True)

    run(scenario)

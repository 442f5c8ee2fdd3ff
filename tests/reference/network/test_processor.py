"""What a Processor does with its connections, step by step: muting, throttling, memory, idleness, excess."""

from __future__ import annotations

import asyncio

import pytest
from kio.schema.find_coordinator.v0.request import FindCoordinatorRequest

from nemesis.reference.network.channel_mute import ChannelMute, ChannelMuteEvent, ChannelMuteState
from nemesis.reference.network.kafka_channel import KafkaChannel
from nemesis.reference.protocol import codec
from tests.reference.network.simulated import (
    OTHER_PORT,
    PORT,
    Served,
    in_virtual_time,
)

TWO_LISTENERS = {
    "listeners": f"PLAINTEXT://10.0.0.1:{PORT},CLIENTS://10.0.0.1:{OTHER_PORT}",
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
}


def test_a_connection_is_muted_until_its_request_is_answered() -> None:
    async def test() -> None:
        async with Served() as served:
            client, other = await served.connect(), await served.connect()
            client.ask("first", 1)
            client.ask("second", 2)
            pending = await served.next_request()
            other.ask("of another", 3)
            assert (await served.next_request()).request.message.key == "of another"
            served.answer(pending)
            second = await served.next_request()
            assert second.request.message.key == "second"
            served.answer(second)
            assert [await client.answer(), await client.answer()] == [1, 2]

    in_virtual_time(test)


def test_a_request_without_an_answer_lets_its_connection_go_on() -> None:
    async def test() -> None:
        async with Served() as served:
            client = await served.connect()
            client.ask("silent", 1)
            client.ask("spoken", 2)
            channel = served.server.data_plane_request_channel
            channel.send_no_op_response(await served.next_request())
            served.answer(await served.next_request())
            assert await client.answer() == 2

    in_virtual_time(test)


def test_a_request_may_be_answered_by_the_end_of_its_connection() -> None:
    async def test() -> None:
        async with Served() as served:
            client = await served.connect()
            client.ask("a")
            channel = served.server.data_plane_request_channel
            channel.close_connection(await served.next_request())
            assert await client.answer() is None

    in_virtual_time(test)


@pytest.mark.parametrize("answered_after_s", [0.0, 9.0])
def test_a_throttled_connection_stays_muted_whenever_its_answer_is_sent(
    answered_after_s: float,
) -> None:
    async def test() -> None:
        async with Served() as served:
            loop = asyncio.get_running_loop()
            client = await served.connect()
            client.ask("first", 1)
            client.ask("second", 2)
            pending = await served.next_request()
            began = loop.time()
            served.server.data_plane_request_channel.start_throttling(pending, 5.0)
            await asyncio.sleep(answered_after_s)
            served.answer(pending)
            assert await client.answer() == 1
            assert (await served.next_request()).request.message.key == "second"
            assert loop.time() - began >= max(5.0, answered_after_s)

    in_virtual_time(test)


def test_throttling_ends_also_for_a_connection_that_has_gone() -> None:
    async def test() -> None:
        async with Served() as served:
            client = await served.connect()
            client.ask("a")
            pending = await served.next_request()
            served.server.data_plane_request_channel.start_throttling(pending, 5.0)
            served.answer(pending)
            client.close()
            await asyncio.sleep(10.0)
            assert served.server.connection_quotas.count == 0

    in_virtual_time(test)


def test_an_event_that_cannot_come_is_an_error() -> None:
    muting = ChannelMute()
    with pytest.raises(ValueError, match="RESPONSE_SENT cannot come while a channel is NOT_MUTED"):
        muting.handle_event(ChannelMuteEvent.RESPONSE_SENT)
    assert muting.state is ChannelMuteState.NOT_MUTED


class Receiving(asyncio.Transport):
    """A client's end that takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The protocol is told by the test."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        self.get_protocol().pause_writing()

    def resume_reading(self) -> None:
        """It was never paused."""

    def close(self) -> None:
        """The test is over."""

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.channel

    channel: KafkaChannel


def test_a_client_that_does_not_take_its_answers_is_not_served_on() -> None:
    async def test() -> None:
        async with Served() as served:
            transport = Receiving()
            acceptor = served.server.acceptors[0]
            transport.channel = channel = acceptor.new_channel()
            channel.connection_made(transport)
            request = codec.encode_request(
                FindCoordinatorRequest(key="a"), correlation_id=1, client_id="c"
            )
            channel.data_received(request * 2)
            served.answer(await served.next_request())
            assert len(transport.written) == 1
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(60):
                    await served.next_request()
            channel.resume_writing()
            served.answer(await served.next_request())
            assert len(transport.written) == 2

    in_virtual_time(test)


def test_a_full_queue_leaves_requests_with_their_connections() -> None:
    async def test() -> None:
        async with Served(queued_max_requests=2, num_network_threads=2) as served:
            clients = [await served.connect() for _ in range(6)]
            for index, client in enumerate(clients):
                client.ask(str(index), index)
            await asyncio.sleep(1.0)
            keys = set()
            for _ in clients:
                pending = await served.next_request()
                keys.add(pending.request.message.key)
                served.answer(pending)
            assert keys == {"0", "1", "2", "3", "4", "5"}
            assert [await client.answer() for client in clients] == [0, 1, 2, 3, 4, 5]

    in_virtual_time(test)


def test_frames_wait_for_memory_and_come_when_it_is_given_back() -> None:
    async def test() -> None:
        properties = {"socket.request.max.bytes": 100, "queued.max.request.bytes": 100}
        async with Served(**properties) as served:
            clients = [await served.connect() for _ in range(4)]
            for index, client in enumerate(clients):
                client.ask("x" * 60, index)
            first, second = await served.next_request(), await served.next_request()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(60):
                    await served.next_request()
            served.answer(first)
            served.answer(second)
            for _ in range(2):
                served.answer(await served.next_request())
            assert [await client.answer() for client in clients] == [0, 1, 2, 3]

    in_virtual_time(test)


def test_a_connection_on_which_nothing_moves_is_closed() -> None:
    async def test() -> None:
        async with Served(connections_max_idle_ms=10_000) as served:
            idle, busy = await served.connect(), await served.connect()
            for _ in range(4):
                await asyncio.sleep(6.0)
                busy.ask("a", 7)
                served.answer(await served.next_request())
                assert await busy.answer() == 7
            assert await idle.answer() is None
            assert served.server.connection_quotas.count == 1

    in_virtual_time(test)


def test_processors_take_connections_in_turn() -> None:
    async def test() -> None:
        async with Served(num_network_threads=3) as served:
            clients = [await served.connect() for _ in range(7)]
            await asyncio.sleep(1.0)
            (acceptor,) = served.server.acceptors
            assert [len(processor._hosts) for processor in acceptor.processors] == [3, 2, 2]
            for client in clients:
                client.close()
            await asyncio.sleep(1.0)
            assert [len(processor._hosts) for processor in acceptor.processors] == [0, 0, 0]

    in_virtual_time(test)


def test_the_listener_of_brokers_goes_beyond_max_connections_at_the_cost_of_the_idlest_client() -> (
    None
):
    async def test() -> None:
        async with Served(max_connections=2, **TWO_LISTENERS) as served:
            idle = await served.connect(OTHER_PORT)
            await asyncio.sleep(1.0)
            busy = await served.connect(OTHER_PORT)
            await asyncio.sleep(1.0)
            broker = await served.connect(PORT)
            broker.ask("a", 5)
            served.answer(await served.next_request())
            assert await broker.answer() == 5
            assert await idle.answer() is None
            busy.ask("b", 6)
            served.answer(await served.next_request())
            assert await busy.answer() == 6
            assert served.server.connection_quotas.count == 2

    in_virtual_time(test)

"""A channel that is closed as soon as its last bytes are written reports its loss once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nemesis.reference.network.kafka_channel import KafkaChannel

FRAME = bytes(20_000_000)
"""More than the socket's buffers hold, so that some of it waits."""


@pytest.mark.parametrize("end", [KafkaChannel.close, KafkaChannel.abort])
def test_a_channel_ends_when_its_last_bytes_are_written(end: Any) -> None:
    async def scene() -> list[dict[str, Any]]:
        errors: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        channels: list[KafkaChannel] = []
        server = await loop.create_server(
            lambda: KafkaChannel(max_bytes=100, accepted=channels.append), "127.0.0.1", 0
        )
        async with server:
            host, port = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(host, port)
            while not channels:
                await asyncio.sleep(0)
            (channel,) = channels
            channel.send(FRAME)
            assert channel.is_sending
            channel.attach(lambda sent: None if sent.is_closed or sent.is_sending else end(sent))
            assert await reader.readexactly(len(FRAME)) == FRAME
            assert await reader.read() == b""
            while not channel.is_lost:
                await asyncio.sleep(0)
            writer.close()
            await asyncio.sleep(0)
        return errors

    async def in_time() -> list[dict[str, Any]]:
        return await asyncio.wait_for(scene(), 30)

    assert asyncio.run(in_time()) == []

"""Frames that arrive byte by byte. The simulated network delivers what was written at once, so runs never meet them."""

from __future__ import annotations

import asyncio
from functools import partial

from kio.schema.api_versions.v0.request import ApiVersionsRequest

from nemesis.reference.network.network_client import BrokerConnection
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.zookeeper.channel import FROM_CLIENT, Channel, encode
from nemesis.simulation.zookeeper.messages import AreYouThere, Connect, Ping
from nemesis.workloads.kafka.connection import KafkaConnection

RELAY = ("127.0.0.1", 9999)


async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass everything on, one byte after the other."""
    while data := await reader.read(1000):
        for byte in data:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.001)
    writer.close()


def test_brokers_and_clients_read_frames_from_single_bytes() -> None:
    loop = SimulationLoop()
    config = SimulationRuntimeConfig(
        broker_count=1, client_count=1, zookeeper_count=1, real_codec=True
    )
    runtime = SimulationRuntime(config, loop, MemoryRecord(loop.clock_ns))
    broker = runtime.cluster.address("broker-1")
    pumps = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(broker.host, broker.port)
        pumps.append(asyncio.create_task(trickle(reader, back)))
        pumps.append(asyncio.create_task(trickle(there, writer)))

    async def main() -> None:
        await runtime.lifecycle.start()
        await asyncio.start_server(relay, *RELAY)
        client = KafkaConnection(
            *RELAY, client_id="a", source_host=runtime.cluster.client_host("client-1")
        )
        peer = BrokerConnection(client_id="b", source_address=None, max_response_bytes=10_000)
        for _ in range(2):
            for answer in (
                client.request(ApiVersionsRequest(), timeout_s=30),
                peer.send(*RELAY, ApiVersionsRequest(), timeout_s=30),
            ):
                begun = loop.time()
                assert len((await answer).api_keys) > 5
                assert loop.time() - begun > 0.02, "it came at once: nothing was torn"
        client.close()
        await peer.close()
        await asyncio.gather(*pumps)

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def keep(heard: list[object], _channel: Channel, message: object) -> None:
    heard.append(message)


def test_members_read_frames_from_any_pieces() -> None:
    sent = [Connect(7, 2000, 9), AreYouThere(), Ping(), Connect(8, 3000, 1)]
    stream = b"".join(map(encode, sent))
    for size in range(1, len(stream) + 1):
        heard: list[object] = []
        channel = Channel(FROM_CLIENT, partial(keep, heard), print)
        for begin in range(0, len(stream), size):
            channel.data_received(stream[begin : begin + size])
        assert heard == sent

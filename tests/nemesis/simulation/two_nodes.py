"""Two nodes on a simulated network; one listens and notes what its connections bring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from nemesis.interfaces.links import Link
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.network import Network
from nemesis.simulation.node import Node
from nemesis.simulation.randomness import stream

A, B = "10.0.0.1", "10.0.0.2"
THERE, BACK = Link("a", "b"), Link("b", "a")
PORT = 9092


@dataclass
class World:
    """Two nodes; ``b`` listens and notes what its connections bring."""

    loop: SimulationLoop
    network: Network
    a: Node
    b: Node
    heard: list[tuple[object, float]] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def listen(self) -> None:
        server = await asyncio.start_server(self._serve, B, PORT)
        await server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.note("connected")
        try:
            while data := await reader.read(1000):
                self.note(data)
                writer.write(data.upper())
            self.note("eof")
        except OSError as error:
            self.note(type(error))

    def note(self, label: object) -> None:
        self.heard.append((label, self.loop.time()))

    def said(self) -> list[object]:
        return [label for label, _ in self.heard]

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def wait() -> None:
            await main()

        self.loop.run_until_complete(wait())

    @asynccontextmanager
    async def connected(
        self,
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(B, PORT, local_addr=(A, 0))
        try:
            yield reader, writer
        finally:
            writer.close()


def two_nodes() -> Iterator[World]:
    """Yield the world; dispose of it."""
    loop = SimulationLoop()
    network = Network(loop, stream(1, "network"))
    network.register(A, "a")
    network.register(B, "b", speaks_kafka=True)
    world = World(loop, network, Node(loop, "a", A), Node(loop, "b", B))
    world.b.start(world.listen)
    yield world
    loop.close()

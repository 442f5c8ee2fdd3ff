"""The same steps on real sockets and on the simulated network: what each side observes must be the same.

A step is done by one end of a connection; after each, both worlds get time to settle. The reader's limit is small, so
that reading pauses and bytes stay in the (real or simulated) kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.network import Network
from nemesis.simulation.randomness import stream

LIMIT = 64


class Do(Enum):
    WRITE = "write"
    DRAIN = "drain"
    READ = "read"
    HALF_CLOSE = "half-close"
    CLOSE = "close"
    ABORT = "abort"
    WAIT_CLOSED = "wait closed"
    STOP_LISTENING = "stop listening"
    RECONNECT = "connect anew"


@dataclass(frozen=True)
class Step:
    end: int
    """0: who called, 1: who was called."""
    do: Do
    size: int = 0

    def __repr__(self) -> str:
        return f"Step({self.end}, {self.do}, {self.size})"


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0, 1]),
        st.sampled_from(Do),
        st.sampled_from([1, 10, LIMIT, 3 * LIMIT, 5000]),
    ),
    max_size=14,
)


class Pair:
    """A connection, both ends in this process."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.Queue()
        )
        self.ends: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._written = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(
            lambda reader, writer: self._accepted.put_nowait((reader, writer)),
            "127.0.0.1",
            0,
            limit=LIMIT,
        )
        self._address = self._server.sockets[0].getsockname()
        await self._connect()

    async def _connect(self) -> None:
        caller = await asyncio.open_connection(*self._address, limit=LIMIT)
        self.ends = [caller, await self._accepted.get()]

    async def close(self) -> None:
        for _, writer in self.ends:
            writer.transport.abort()
        await self.settle()
        self._server.close()

    async def settle(self) -> None:
        for _ in range(2):
            await asyncio.sleep(self._settle_s)

    async def step(self, step: Step) -> object:
        """Do it and say what came of it."""
        _, writer = self.ends[step.end]
        try:
            match step.do:
                case Do.WRITE:
                    writer.write(self._next_bytes(step.size))
                case Do.HALF_CLOSE:
                    writer.write_eof()
                case Do.CLOSE:
                    writer.close()
                case Do.ABORT:
                    writer.transport.abort()
                case Do.STOP_LISTENING:
                    self._server.close()
                case Do.RECONNECT:
                    await self._reconnect()
                case _:
                    return await self._wait(step)
        except (OSError, RuntimeError) as error:
            return type(error).__name__
        return "done"

    async def _wait(self, step: Step) -> object:
        reader, writer = self.ends[step.end]
        try:
            async with asyncio.timeout(self._settle_s):
                match step.do:
                    case Do.READ:
                        return await reader.read(step.size)
                    case Do.DRAIN:
                        await writer.drain()
                        return None
                    case _ if writer.is_closing():
                        await writer.wait_closed()
                        return None
                    case _:
                        return "open"
        except TimeoutError:
            return "waits"

    async def _reconnect(self) -> None:
        before = self.ends
        await self._connect()
        for _, writer in before:
            writer.transport.abort()

    def observe(self) -> list[object]:
        """What each end can see of itself."""
        return [
            (
                reader.at_eof(),
                type(reader.exception()).__name__,
                writer.is_closing(),
                writer.transport.is_reading(),  # type: ignore[attr-defined]
            )
            for reader, writer in self.ends
        ]

    def _next_bytes(self, size: int) -> bytes:
        start, self._written = self._written, self._written + size
        return bytes(position % 251 for position in range(start, start + size))


async def play(steps: list[Step], settle_s: float) -> list[object]:
    pair = Pair(settle_s)
    await pair.open()
    observed: list[object] = []
    try:
        for step in steps:
            outcome = await pair.step(step)
            await pair.settle()
            observed.append((step, outcome, pair.observe()))
    finally:
        await pair.close()
    return observed


def play_for_real(steps: list[Step]) -> list[object]:
    with asyncio.Runner() as runner:
        return runner.run(play(steps, 0.001))


def play_simulated(steps: list[Step]) -> list[object]:
    loop = SimulationLoop()
    Network(loop, stream(1, "network"))
    try:
        return loop.run_until_complete(play(steps, 0.1))
    finally:
        loop.close()


@settings(max_examples=80)
@given(STEPS)
@example([Step(0, Do.WRITE, 10), Step(1, Do.CLOSE), Step(0, Do.READ, 10), Step(0, Do.WRITE, 1)])
@example([Step(0, Do.CLOSE), *[Step(1, Do.WRITE, 1)] * 3, Step(1, Do.DRAIN), Step(1, Do.READ, 1)])
@example([Step(0, Do.WRITE, 5000), Step(1, Do.ABORT), Step(0, Do.DRAIN), Step(0, Do.READ, 1)])
@example([Step(1, Do.CLOSE), Step(0, Do.WRITE, 1), Step(0, Do.HALF_CLOSE), Step(0, Do.WRITE, 1)])
@example([Step(0, Do.HALF_CLOSE), Step(1, Do.WRITE, 10), Step(1, Do.CLOSE), Step(0, Do.READ, 64)])
@example([Step(1, Do.STOP_LISTENING), Step(0, Do.RECONNECT), Step(0, Do.WRITE, 1)])
def test_simulated_streams_behave_as_real_ones(steps: list[Step]) -> None:
    assert play_simulated(steps) == play_for_real(steps)


async def connect_to_nobody() -> list[str]:
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    reported: list[str] = []

    async def attempt(call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except OSError as error:
            reported.append(f"{type(error).__name__} {error.errno}")

    await attempt(lambda: asyncio.start_server(print, *address))
    server.close()
    await attempt(lambda: asyncio.open_connection(*address))
    return reported


@pytest.mark.parametrize("is_real", [True, False])
def test_refusals_are_those_of_real_sockets(is_real: bool) -> None:
    loop = asyncio.new_event_loop() if is_real else SimulationLoop()
    if isinstance(loop, SimulationLoop):
        Network(loop, stream(1, "network"))
    try:
        reported = loop.run_until_complete(connect_to_nobody())
    finally:
        loop.close()
    assert reported == ["OSError 98", "ConnectionRefusedError 111"]

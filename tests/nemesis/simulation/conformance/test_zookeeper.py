"""The simulated ZooKeeper answers as the real one does.

The same random programs run on a real server, through the adapter that brokers use, and on the simulated ensemble, of
one member and of three. Results, errors, stats, watches, their order towards the replies, and what the transaction log
tells of it all are compared.

Not compared: the order in which several watches of one znode run (kazoo keeps them in sets), the order in which
the ephemerals of a session are deleted, times, session ids, anything that Kafka's code never asks for (ACLs, quotas,
malformed paths, oversized requests), how long elections and expiries take, and a real ensemble's lag.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nemesis.history.events import Event
from nemesis.history.znodes import ZnodeEvents
from nemesis.history.zookeeper_log import Transaction, read_log
from nemesis.interfaces.links import Link
from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.ports import ZooKeeperClient
from tests.history.zookeeper_server import zookeeper_server
from tests.nemesis.simulation.conformance.zookeeper_program import (
    CLIENTS,
    Player,
    Step,
    operation_steps,
    session_steps,
)
from tests.nemesis.simulation.zookeeper.world import World, run
from tests.reference.session_expiry import drop_connection, expire

T = TypeVar("T")
TIMEOUT_MS = 10_000
SETTINGS = settings(
    derandomize=True,
    suppress_health_check=[HealthCheck.data_too_large],
)


class RealSide:
    """Clients of the real server, on a loop of their own that outlives the programs."""

    def __init__(self, hosts: str, directory: Path) -> None:
        self.hosts = hosts
        self.directory = directory
        self.loop = asyncio.new_event_loop()
        self.prefix = ""
        self.clients: list[ZooKeeperClient] = []
        self._numbers = itertools.count()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, 120))

    async def open(self) -> ZooKeeperClient:
        client = KazooZooKeeperClient(self.hosts, TIMEOUT_MS, "127.0.0.1")
        await client.start()
        return client

    async def play(self, program: list[Step]) -> Any:
        while len(self.clients) < CLIENTS:
            self.clients.append(await self.open())
        self.prefix = f"/program-{next(self._numbers)}"
        await self.clients[0].writes.create(self.prefix, b"")
        return await Player(self).play(program)

    async def close_clients(self) -> None:
        """So that ephemerals and watches of one program do not reach into the next."""
        for client in self.clients:
            await client.close()
        self.clients.clear()

    async def end_session(self, session_id: int) -> None:
        await asyncio.to_thread(expire, self.hosts, session_id)

    async def lose_connection(self, index: int) -> None:
        await asyncio.to_thread(drop_connection, self.hosts, self.clients[index].session_id)


class SimulatedSide:
    """The same on a world of its own."""

    def __init__(self, world: World, prefix: str) -> None:
        self.world = world
        self.prefix = prefix
        self.clients: list[ZooKeeperClient] = []
        self._names = itertools.count()

    async def open(self) -> ZooKeeperClient:
        client = self.world.client(f"client-{next(self._names)}", timeout_ms=TIMEOUT_MS)
        await client.start()
        return client

    async def play(self, program: list[Step]) -> Any:
        self.clients = [await self.open() for _ in range(CLIENTS)]
        await self.clients[0].writes.create(self.prefix, b"")
        result = await Player(self).play(program)
        for client in self.clients:
            await client.close()
        return result

    async def end_session(self, session_id: int) -> None:
        async with self.world.admin() as admin:
            assert await admin.end_session(session_id)

    async def lose_connection(self, index: int) -> None:
        source = self.clients[index]._source_host  # type: ignore[attr-defined]
        name = next(name for name, host in self.world.hosts.items() if host == source)
        self.world.network.reset([Link(name, member) for member in self.world.nodes])


def simulate(program: list[Step], members: int, prefix: str) -> tuple[Any, list[Transaction]]:
    results: list[Any] = []

    async def test(world: World) -> None:
        results.append(await SimulatedSide(world, prefix).play(program))

    world = run(test, members=members, seed=len(program))
    return results[0], world.ensemble.transactions()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSide]:
    directory = tmp_path_factory.mktemp("zookeeper")
    with zookeeper_server(directory) as hosts:
        side = RealSide(hosts, directory)
        try:
            yield side
        finally:
            side.run(side.close_clients())
            side.loop.close()


def assert_same(real: RealSide, program: list[Step]) -> None:
    expected = real.run(real.play(program))
    for members in (1, 3):
        observed, _ = simulate(program, members, real.prefix)
        assert observed == expected, f"with {members} members"


def test_operations_answer_as_on_a_real_server(real: RealSide) -> None:
    @settings(SETTINGS, max_examples=60)
    @given(st.lists(operation_steps, min_size=1, max_size=25))
    def check(program: list[Step]) -> None:
        try:
            assert_same(real, program)
        finally:
            real.run(real.close_clients())

    check()


def test_sessions_end_as_on_a_real_server(real: RealSide) -> None:
    step = operation_steps | operation_steps | operation_steps | session_steps

    @settings(SETTINGS, max_examples=15)
    @given(st.lists(step, min_size=4, max_size=16))
    def check(program: list[Step]) -> None:
        try:
            assert_same(real, program)
        finally:
            real.run(real.close_clients())

    check()


def test_the_transaction_log_tells_the_same_story(real: RealSide) -> None:
    """Through the code that makes events of a real log."""
    simulated: dict[str, list[tuple[Any, ...]]] = {}

    @settings(SETTINGS, max_examples=25, phases=[Phase.generate])
    @given(st.lists(operation_steps, min_size=5, max_size=25))
    def play(program: list[Step]) -> None:
        real.run(real.play(program))
        real.run(real.close_clients())
        _, transactions = simulate(program, 3, real.prefix)
        simulated[real.prefix] = story(ZnodeEvents().events(transactions), real.prefix)

    play()
    contents = read_log(real.directory / "version-2")
    assert contents.problems == []
    events = list(ZnodeEvents().events(contents.transactions))
    assert simulated
    for prefix, observed in simulated.items():
        assert observed == story(iter(events), prefix), prefix


def story(events: Iterator[Event], prefix: str) -> list[tuple[Any, ...]]:
    """What happened from the creation of a program's znode to the end of its clients, without numbers of its own."""
    reported: list[Event] = []
    closes = 0
    for event in events:
        if not reported and event.path != prefix:
            continue
        if event.path is None or "/barrier-" not in event.path:
            reported.append(event)
        closes += event.kind == "session-closed"
        if closes == CLIENTS:
            break
    zxids = sorted({event.zxid or 0 for event in reported})
    # Sorted, because the order of the ephemerals that end with a session is nobody's promise.
    return sorted(
        (
            zxids.index(event.zxid or 0),
            event.kind,
            str(event.zk_op),
            str(event.path),
            str(event.data),
            str(event.zk_version),
            event.ephemeral,
            str(event.error),
            str(event.reason),
            str(event.timeout_ms),
        )
        for event in reported
    )

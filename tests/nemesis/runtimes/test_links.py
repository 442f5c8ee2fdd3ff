"""Links through a real proxy process: what is held, what still flows, and what arrives after the heal.

The nodes are small servers of the tests that speak Kafka's frames; every wait is for an event with a bound.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Link
from nemesis.runtimes.local.addresses import AddressPlan, take_lease
from nemesis.runtimes.local.links import Links
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import Journal

BOUND_S = 10.0
QUIET_S = 0.15
"""How long nothing must come before a link counts as held; a free link answers in about a millisecond."""

PRODUCE, FETCH = 0, 1


def frame(api_key: int, body: bytes) -> bytes:
    payload = api_key.to_bytes(2) + body
    return len(payload).to_bytes(4) + payload


class Node:
    """A server that remembers every request and answers it with itself."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended_connections = 0
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, host, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                request = await reader.readexactly(size)
                async with self._changed:
                    self.requests.append(request[2:])
                    self._changed.notify_all()
                writer.write(size.to_bytes(4) + request)
        except (asyncio.IncompleteReadError, OSError):
            async with self._changed:
                self.ended_connections += 1
                self._changed.notify_all()
        finally:
            writer.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(condition)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()


class Caller:
    """A connection from one node's address to another's advertised address."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, api_key: int, body: bytes) -> None:
        self.writer.write(frame(api_key, body))

    async def reply(self, timeout_s: float = BOUND_S) -> bytes:
        async with asyncio.timeout(timeout_s):
            size = int.from_bytes(await self.reader.readexactly(4))
            return (await self.reader.readexactly(size))[2:]

    async def hears_nothing(self) -> bool:
        try:
            await asyncio.wait_for(self.reader.read(1), QUIET_S)
        except TimeoutError:
            return True
        return False


class Cluster:
    """A proxy and two nodes, ``broker-1`` and ``broker-2``."""

    def __init__(self, links: Links, plan: AddressPlan, nodes: dict[str, Node]) -> None:
        self.links = links
        self.plan = plan
        self.nodes = nodes
        self._writers: list[asyncio.StreamWriter] = []

    async def call(self, source: str, target: str) -> Caller:
        address = self.plan.advertised(target)
        reader, writer = await asyncio.open_connection(
            address.host, address.port, local_addr=(self.plan.host(source), 0)
        )
        self._writers.append(writer)
        return Caller(reader, writer)

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    journal = Journal.create(tmp_path, directory=tmp_path)
    lease = take_lease(journal, brokers=2, zookeepers=1, clients=1, directory=tmp_path)
    async with AsyncExitStack() as stack:
        nodes = {}
        for name in lease.plan.brokers:
            nodes[name] = Node()
            direct = lease.plan.direct(name)
            await nodes[name].listen(direct.host, direct.port)
            stack.push_async_callback(nodes[name].close)
        links = Links(log=tmp_path / "proxy.log", journal=journal)
        stack.push_async_callback(links.stop)
        await links.start(lease.plan)
        whole = Cluster(links, lease.plan, nodes)
        stack.callback(whole.close)
        yield whole
    lease.release()
    journal.close()
    assert (tmp_path / "proxy.log").read_text() == ""


def play(tmp_path: Path, scene: Callable[[Cluster], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with cluster(tmp_path) as stage:
            await scene(stage)

    asyncio.run(whole())


async def until_held(stage: Cluster) -> None:
    """Wait until the proxy has read, and kept, bytes from broker-1 to broker-2."""
    async with asyncio.timeout(BOUND_S):
        while (await stage.links.counters(REQUESTS))[Link("broker-1", "broker-2")].held_bytes == 0:
            await asyncio.sleep(0)


def reset(caller: Caller) -> None:
    """Close so that the kernel sends RST."""
    sock = caller.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    caller.writer.transport.abort()


REQUESTS = frozenset({Link("broker-1", "broker-2")})
REPLIES = frozenset({Link("broker-2", "broker-1")})
FETCHES = frozenset({Link("broker-1", "broker-2", FETCH)})


def test_held_requests_arrive_in_order_after_the_heal(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        caller = await stage.call("broker-1", "broker-2")
        caller.send(PRODUCE, b"0")
        assert await caller.reply() == b"0"
        await stage.links.hold(REQUESTS)
        for n in range(1, 6):
            caller.send(PRODUCE, b"%d" % n)
        assert await caller.hears_nothing()
        assert stage.nodes["broker-2"].requests == [b"0"]
        await stage.links.release(REQUESTS)
        assert [await caller.reply() for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]
        assert stage.nodes["broker-2"].connections == 1

    play(tmp_path, scene)


def test_holding_replies_lets_requests_through(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        caller = await stage.call("broker-1", "broker-2")
        await stage.links.hold(REPLIES)
        caller.send(PRODUCE, b"done unseen")
        await stage.nodes["broker-2"].until(lambda: bool(stage.nodes["broker-2"].requests))
        assert await caller.hears_nothing()
        await stage.links.release(REPLIES)
        assert await caller.reply() == b"done unseen"

    play(tmp_path, scene)


def test_a_direction_is_the_same_for_requests_and_replies(tmp_path: Path) -> None:
    """Holding broker-2 to broker-1 holds broker-2's own requests, too, and nothing of a client."""

    async def scene(stage: Cluster) -> None:
        await stage.links.hold(REPLIES)
        backwards = await stage.call("broker-2", "broker-1")
        backwards.send(PRODUCE, b"held")
        assert await backwards.hears_nothing()
        assert stage.nodes["broker-1"].connections == 0
        client = await stage.call("client-1", "broker-2")
        client.send(PRODUCE, b"free")
        assert await client.reply() == b"free"

    play(tmp_path, scene)


def test_held_bytes_arrive_although_their_sender_has_closed(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        node = stage.nodes["broker-2"]
        caller = await stage.call("broker-1", "broker-2")
        caller.send(PRODUCE, b"first")
        assert await caller.reply() == b"first"
        await stage.links.hold(REQUESTS)
        caller.send(PRODUCE, b"stale")
        caller.send(PRODUCE, b"staler")
        caller.writer.close()
        await caller.writer.wait_closed()
        assert node.ended_connections == 0
        await stage.links.release(REQUESTS)
        await node.until(lambda: node.ended_connections == 1)
        assert node.requests == [b"first", b"stale", b"staler"]

    play(tmp_path, scene)


def test_bytes_of_a_reset_sender_arrive_before_the_end(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        node = stage.nodes["broker-2"]
        caller = await stage.call("broker-1", "broker-2")
        caller.send(PRODUCE, b"first")
        assert await caller.reply() == b"first"
        await stage.links.hold(REQUESTS)
        caller.send(PRODUCE, b"stale")
        await until_held(stage)
        reset(caller)
        await stage.links.release(REQUESTS)
        await node.until(lambda: node.ended_connections == 1)
        assert node.requests == [b"first", b"stale"]

    play(tmp_path, scene)


@pytest.mark.parametrize("is_given_up", [True, False])
def test_a_connection_given_up_before_the_heal_was_never_made(
    tmp_path: Path, is_given_up: bool
) -> None:
    async def scene(stage: Cluster) -> None:
        node = stage.nodes["broker-2"]
        await stage.links.hold(REQUESTS)
        caller = await stage.call("broker-1", "broker-2")
        caller.send(PRODUCE, b"too early")
        await until_held(stage)
        if is_given_up:
            caller.writer.write_eof()
            async with asyncio.timeout(BOUND_S):
                assert await caller.reader.read() == b""
        await stage.links.release(REQUESTS)
        later = await stage.call("broker-1", "broker-2")
        later.send(PRODUCE, b"later")
        assert await later.reply() == b"later"
        assert (b"too early" in node.requests) is not is_given_up
        assert node.connections == (1 if is_given_up else 2)

    play(tmp_path, scene)


def test_only_requests_of_the_narrowed_key_are_held(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        fetcher = await stage.call("broker-1", "broker-2")
        other = await stage.call("broker-1", "broker-2")
        fetcher.send(FETCH, b"before")
        assert await fetcher.reply() == b"before"
        await stage.links.hold(FETCHES)
        fetcher.send(PRODUCE, b"passes")
        fetcher.send(FETCH, b"stalls")
        fetcher.send(PRODUCE, b"behind")
        assert await fetcher.reply() == b"passes"
        assert await fetcher.hears_nothing()
        other.send(PRODUCE, b"free")
        assert await other.reply() == b"free"
        counted = await stage.links.counters(FETCHES)
        held = len(frame(FETCH, b"stalls") + frame(PRODUCE, b"behind"))
        assert counted[Link("broker-1", "broker-2", FETCH)].held_bytes == held
        assert counted[Link("broker-1", "broker-2", FETCH)].forwarded_bytes == len(
            frame(FETCH, b"before")
        )
        await stage.links.release(FETCHES)
        assert [await fetcher.reply(), await fetcher.reply()] == [b"stalls", b"behind"]

    play(tmp_path, scene)


def test_a_copy_arrives_late_on_a_connection_of_its_own(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        node, link = stage.nodes["broker-1"], Link("client-1", "broker-1", PRODUCE)
        caller = await stage.call("client-1", "broker-1")
        await stage.links.copy([link], after_ms=300)
        caller.send(PRODUCE, b"twice")
        caller.send(FETCH, b"once")
        await node.until(lambda: len(node.requests) == 2)
        assert await stage.links.astray([link]) == 1
        await stage.links.copy([link], after_ms=0)
        caller.send(PRODUCE, b"newer")
        await node.until(lambda: len(node.requests) == 4)
        assert node.requests == [b"twice", b"once", b"newer", b"twice"]
        assert node.connections == 2
        assert await stage.links.astray([link]) == 0
        assert (await stage.links.counters([link]))[link].copies == 1
        await node.until(lambda: node.ended_connections == 1)
        assert [await caller.reply() for _ in range(3)] == [b"twice", b"once", b"newer"]

    play(tmp_path, scene)


@pytest.mark.parametrize("is_abandoned_lost", [False, True])
def test_later_connections_overtake_a_stranded_one(tmp_path: Path, is_abandoned_lost: bool) -> None:
    async def scene(stage: Cluster) -> None:
        node, link = stage.nodes["broker-1"], Link("client-1", "broker-1", PRODUCE)
        abandoned, kept = (
            await stage.call("client-1", "broker-1"),
            await stage.call("client-1", "broker-1"),
        )
        for caller in (abandoned, kept):
            caller.send(FETCH, b"before")
            assert await caller.reply() == b"before"
        await stage.links.strand([link])
        abandoned.send(PRODUCE, b"abandoned")
        kept.send(PRODUCE, b"kept")
        while (await stage.links.counters([link]))[link].held_bytes < len(
            frame(PRODUCE, b"abandoned") + frame(PRODUCE, b"kept")
        ):
            await asyncio.sleep(0.01)
        abandoned.writer.close()
        newer = await stage.call("client-1", "broker-1")
        newer.send(PRODUCE, b"newer")
        assert await newer.reply() == b"newer"
        assert node.requests == [b"before", b"before", b"newer"]
        assert await stage.links.astray([link]) == 2
        await stage.links.rejoin([link], is_abandoned_lost=is_abandoned_lost)
        assert await kept.reply() == b"kept"
        await node.until(lambda: node.ended_connections == 1)
        late = {b"kept"} if is_abandoned_lost else {b"kept", b"abandoned"}
        assert set(node.requests[3:]) == late
        assert await stage.links.astray([link]) == 0

    play(tmp_path, scene)


def test_counters_tell_each_direction(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        there, back = Link("broker-1", "broker-2"), Link("broker-2", "broker-1")
        caller = await stage.call("broker-1", "broker-2")
        caller.send(PRODUCE, b"x" * 100)
        await caller.reply()
        await stage.links.hold({back})
        caller.send(PRODUCE, b"y" * 50)
        assert await caller.hears_nothing()
        counted = await stage.links.counters([there, back])
        long, short = len(frame(PRODUCE, b"x" * 100)), len(frame(PRODUCE, b"y" * 50))
        assert (counted[there].forwarded_bytes, counted[there].held_bytes) == (long + short, 0)
        assert (counted[back].forwarded_bytes, counted[back].held_bytes) == (long, short)

    play(tmp_path, scene)


def test_large_requests_survive_back_pressure_and_a_hold(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        caller = await stage.call("broker-1", "broker-2")
        await stage.links.hold(REQUESTS)
        body = bytes(range(256)) * 4096 * 24  # 24 MiB: more than a flow keeps
        caller.send(PRODUCE, body)
        assert await caller.hears_nothing()
        counted = await stage.links.counters(REQUESTS)
        assert 0 < counted[Link("broker-1", "broker-2")].held_bytes < len(body)
        await stage.links.release(REQUESTS)
        assert await caller.reply() == body

    play(tmp_path, scene)


def test_a_dead_node_closes_its_callers(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        caller = await stage.call("client-1", "zookeeper-1")  # nobody listens behind it
        async with asyncio.timeout(BOUND_S):
            assert await caller.reader.read() == b""

    play(tmp_path, scene)


def test_a_caller_learns_of_a_death_only_through_a_free_link(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        back = {Link("zookeeper-1", "client-1")}
        await stage.links.hold(back)
        caller = await stage.call("client-1", "zookeeper-1")
        assert await caller.hears_nothing()
        await stage.links.release(back)
        async with asyncio.timeout(BOUND_S):
            assert await caller.reader.read() == b""

    play(tmp_path, scene)


def test_a_caller_without_an_address_of_the_cluster_is_outside(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        address = stage.plan.advertised("broker-2")
        await stage.links.hold({Link("outside", "broker-2")})
        reader, writer = await asyncio.open_connection(address.host, address.port)
        stranger = Caller(reader, writer)
        stranger.send(PRODUCE, b"hello")
        assert await stranger.hears_nothing()
        await stage.links.release({Link("outside", "broker-2")})
        assert await stranger.reply() == b"hello"
        writer.transport.abort()

    play(tmp_path, scene)


def test_a_proxy_that_dies_is_a_failure_of_the_runtime(tmp_path: Path) -> None:
    async def scene(stage: Cluster) -> None:
        assert stage.links.pid is not None
        os.kill(stage.links.pid, signal.SIGKILL)
        with pytest.raises(RuntimeFailure, match="the proxy"):
            await stage.links.hold(REQUESTS)

    play(tmp_path, scene)


def test_a_taken_address_is_one_sentence(tmp_path: Path) -> None:
    async def whole() -> None:
        journal = Journal.create(tmp_path, directory=tmp_path)
        lease = take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
        taken = lease.plan.advertised("broker-1")
        squatter = await asyncio.start_server(lambda _r, w: w.close(), taken.host, taken.port)
        links = Links(log=tmp_path / "proxy.log", journal=journal)
        try:
            with pytest.raises(MissingRequirement, match=rf"{taken} cannot be listened at"):
                await links.start(lease.plan)
        finally:
            await links.stop()
            squatter.close()
        with pytest.raises(RuntimeFailure, match="the proxy is not running"):
            await links.hold(REQUESTS)

    asyncio.run(whole())

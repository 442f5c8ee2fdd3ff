"""Packet faults between real network namespaces, seen with datagrams and connections of the test's own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

from benchmarks.namespaces import transfer
from nemesis.interfaces.errors import FaultLost, RuntimeFailure
from nemesis.interfaces.impairment import Impairment
from nemesis.interfaces.links import Link, LinkCounters
from nemesis.runtimes.docker.packets import handler_process, packet_rules
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError
from tests.nemesis.runtimes.docker.packets.laboratory import (
    NAMES,
    Laboratory,
    links,
    play,
)

pytestmark = pytest.mark.e2e

EVERYBODY = set(permutations(NAMES, 2))
FETCH, PRODUCE = 1, 0
BOUND_S = 10.0
SILENCE_S = 0.3


def own_network() -> int:
    return Path("/proc/thread-self/ns/net").stat().st_ino


def request(key: int) -> bytes:
    frame = key.to_bytes(2) + (12).to_bytes(2) + b"a request"
    return len(frame).to_bytes(4) + frame


@pytest.mark.parametrize(
    "pairs",
    [
        [("broker-1", "broker-2")],
        [("broker-1", "client-1")],
        [("client-1", "broker-1")],
        [("broker-1", "broker-2"), ("broker-2", "broker-1"), ("broker-2", "client-1")],
    ],
)
def test_exactly_the_named_directions_are_cut_and_after_the_heal_none(
    tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    async def scene(lab: Laboratory) -> None:
        assert await asyncio.to_thread(lab.heard) == EVERYBODY
        await lab.rules.cut(links(*pairs))
        assert await asyncio.to_thread(lab.heard) == EVERYBODY - set(pairs)
        counters = await lab.rules.counters(links(*EVERYBODY))
        held = {
            (link.source, link.target) for link, counter in counters.items() if counter.held_bytes
        }
        assert held == set(pairs)
        assert all(counter.forwarded_bytes for counter in counters.values())
        await lab.rules.restore(links(*pairs))
        assert await asyncio.to_thread(lab.heard) == EVERYBODY
        assert await lab.rules.counters(links(*pairs)) != counters

    play(tmp_path, scene)


def test_counters_outlast_the_rules_that_counted(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        item = links(("broker-1", "broker-2"))
        [link] = item
        await lab.rules.cut(item)
        await asyncio.to_thread(lab.heard)
        held = (await lab.rules.counters(item))[link].held_bytes
        await lab.rules.restore(item)
        await lab.rules.reapply("broker-2")
        assert (await lab.rules.counters(item))[link].held_bytes == held > 0

    play(tmp_path, scene)


@pytest.mark.parametrize("without", [frozenset[Feature](), frozenset({Feature.U32})])
def test_requests_of_one_key_are_lost_and_all_else_works(
    tmp_path: Path, without: frozenset[Feature]
) -> None:
    async def scene(lab: Laboratory) -> None:
        link = Link("broker-1", "broker-2", FETCH)
        follower, leader = lab.machines["broker-1"], lab.machines["broker-2"]
        await lab.rules.cut(frozenset({link}))

        def fetch() -> None:
            with leader.listen() as server, follower.connect(leader) as client:
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(BOUND_S)
                    client.sendall(request(PRODUCE))
                    assert connection.recv(100) == request(PRODUCE)
                    client.sendall(request(FETCH))
                    connection.settimeout(SILENCE_S)
                    with pytest.raises(TimeoutError):
                        connection.recv(100)
                    counters = asyncio.run_coroutine_threadsafe(released(), loop).result(BOUND_S)
                    assert counters.held_bytes > 0
                    assert counters.forwarded_bytes == 0
                    connection.settimeout(BOUND_S)
                    assert connection.recv(100) == request(FETCH)

        async def released() -> LinkCounters:
            counters = (await lab.rules.counters(frozenset({link})))[link]
            await lab.rules.restore(frozenset({link}))
            return counters

        loop = asyncio.get_running_loop()
        await asyncio.to_thread(fetch)
        assert (await lab.rules.counters(frozenset({link})))[link].forwarded_bytes > 0

    play(tmp_path, scene, without=without)


@pytest.mark.parametrize("target", ["broker-2", "client-1"])
def test_a_delay_is_in_force_on_its_link_only_and_ends(tmp_path: Path, target: str) -> None:
    async def scene(lab: Laboratory) -> None:
        slow = links(("broker-1", target))
        await lab.rules.delay(slow, delay_ms=100)
        came = await asyncio.to_thread(lab.arrivals, "broker-1", target, count=20)
        assert [number for number, _ in came] == list(range(20))
        assert min(after_ms for _, after_ms in came) >= 100
        back = await asyncio.to_thread(lab.arrivals, target, "broker-1", count=20)
        assert min(after_ms for _, after_ms in back) < 50
        assert (await lab.rules.packet_counters(slow)).popitem()[1].delayed == 20
        await lab.rules.delay(slow, delay_ms=0)
        came = await asyncio.to_thread(lab.arrivals, "broker-1", target, count=20)
        assert min(after_ms for _, after_ms in came) < 50

    play(tmp_path, scene)


@pytest.mark.parametrize("target", ["broker-2", "client-1"])
def test_packets_are_lost_doubled_and_overtaken(tmp_path: Path, target: str) -> None:
    async def scene(lab: Laboratory) -> None:
        bad = links(("broker-1", target))

        async def numbers(impairment: Impairment) -> list[int]:
            await lab.rules.impair(bad, impairment)
            came = await asyncio.to_thread(lab.arrivals, "broker-1", target, count=200)
            return [number for number, _ in came]

        lossy = await numbers(Impairment(loss=0.5))
        assert 50 < len(lossy) < 150
        assert lossy == sorted(lossy)
        doubled = await numbers(Impairment(duplication=0.5))
        assert set(doubled) == set(range(200))
        assert 50 < len(doubled) - 200 < 150
        overtaken = await numbers(Impairment(reordering=0.3, hold_ms=30))
        assert sorted(overtaken) == list(range(200))
        assert overtaken != sorted(overtaken)
        late = await numbers(Impairment(delay_ms=20, jitter_ms=20))
        assert late == list(range(200))
        [counters] = (await lab.rules.packet_counters(bad)).values()
        assert counters.lost == 200 - len(lossy)
        assert counters.duplicated == len(doubled) - 200
        assert counters.reordered > 0
        assert counters.delayed > 100
        assert await numbers(Impairment()) == list(range(200))

    play(tmp_path, scene)


def test_a_stream_stays_whole_whatever_happens_to_its_packets(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        bad = Impairment(loss=0.02, duplication=0.1, reordering=0.1, hold_ms=3, delay_ms=2)
        await lab.rules.impair(links(("broker-1", "broker-2"), ("broker-2", "broker-1")), bad)
        first, two = lab.machines["broker-1"], lab.machines["broker-2"]
        assert await transfer(first, two, size=500_000) > 0

    play(tmp_path, scene)


def test_one_fault_on_a_link_ends_and_the_other_stays(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        item = links(("broker-1", "broker-2"))
        await lab.rules.cut(item)
        await lab.rules.delay(item, delay_ms=50)
        await lab.rules.impair(item, Impairment(loss=0.1))
        await lab.rules.impair(item, Impairment())
        await lab.rules.delay(item, delay_ms=0)
        assert await asyncio.to_thread(lab.heard) == EVERYBODY - {("broker-1", "broker-2")}

    play(tmp_path, scene)


def test_bandwidth_is_as_narrow_as_told_and_wide_again(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        rate_kbit_s = 4_000

        async def measured() -> int:
            return await lab.rules.rate_kbit_s("broker-1", expected_kbit_s=rate_kbit_s)

        assert await measured() > 3 * rate_kbit_s
        await lab.rules.throttle("broker-1", rate_kbit_s=rate_kbit_s)
        assert 0.7 * rate_kbit_s < await measured() < 1.25 * rate_kbit_s
        first, two = lab.machines["broker-1"], lab.machines["broker-2"]
        assert await transfer(first, two, size=250_000) < 1.25 * rate_kbit_s / 8000
        await lab.rules.throttle("broker-1", rate_kbit_s=0)
        assert await measured() > 3 * rate_kbit_s

    play(tmp_path, scene)


def test_connections_between_the_named_are_reset_at_both_ends(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        first, two, client = (lab.machines[name] for name in NAMES)
        with ExitStack() as stack:
            server = stack.enter_context(two.listen())
            hit = stack.enter_context(first.connect(two))
            spared = stack.enter_context(client.connect(two))
            ends = {address[0]: end for end, address in (server.accept(), server.accept())}
            for end in ends.values():
                stack.enter_context(end)
            # Each end is reset by its own kernel, unless the other one's word was there before.
            assert await lab.rules.reset(links(("broker-1", "broker-2"))) in (1, 2)
            for end in (hit, ends[first.host]):
                end.settimeout(BOUND_S)
                with pytest.raises(ConnectionError):
                    end.recv(1)
            spared.sendall(b"still there")
            ends[client.host].settimeout(BOUND_S)
            assert ends[client.host].recv(100) == b"still there"
            assert await lab.rules.reset(links(("client-1", "broker-2"))) == 1
            with pytest.raises(ConnectionError):
                spared.recv(1)
            assert await lab.rules.reset(links(("broker-1", "broker-2"))) == 0

    play(tmp_path, scene)


def test_a_container_that_starts_again_is_ruled_as_before(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        item = links(("broker-1", "broker-2"))
        await lab.rules.cut(item)
        await lab.rules.delay(item, delay_ms=20)
        await lab.rules.throttle("broker-2", rate_kbit_s=1_000)
        await packet_rules._clear(lab.machines["broker-2"].namespace)  # as empty as a new one
        assert await asyncio.to_thread(lab.heard) == EVERYBODY
        await lab.rules.reapply("broker-2")
        assert await asyncio.to_thread(lab.heard) == EVERYBODY - {("broker-1", "broker-2")}
        assert "tbf" in await lab.saved("broker-2")
        await lab.rules.restore(item)
        came = await asyncio.to_thread(lab.arrivals, "broker-1", "broker-2", count=5)
        assert min(after_ms for _, after_ms in came) >= 20

    play(tmp_path, scene)


def test_a_container_that_dies_meanwhile_is_ruled_when_it_starts_again(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        there = lab.machines["broker-2"].namespace
        await there.run("ip", "link", "delete", "eth0")  # as the engine does at its death
        assert await lab.rules.rate_kbit_s("broker-2", expected_kbit_s=1_000) == 0
        await lab.rules.throttle("broker-2", rate_kbit_s=1_000)
        await there.run("ip", "address", "add", f"{lab.machines['broker-2'].host}/32", "dev", "lo")
        await lab.rules.reapply("broker-2")
        assert "tbf" in await lab.saved("broker-2")
        await lab.rules.throttle("broker-2", rate_kbit_s=0)
        os.kill(there.pid, signal.SIGKILL)
        await lab.rules.reapply("broker-2")
        assert "NEMESIS" in await lab.saved("broker-2")

    play(tmp_path, scene)


def test_clearing_takes_everything_of_ours_and_nothing_else(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        there = lab.machines["broker-2"].namespace
        await there.run("iptables", "-A", "INPUT", "-s", "192.0.2.7", "-j", "DROP")
        both = links(("broker-1", "broker-2"), ("broker-2", "client-1"))
        await lab.rules.cut(both)
        await lab.rules.delay(both, delay_ms=20)
        await lab.rules.throttle("broker-2", rate_kbit_s=1_000)
        await lab.rules.clear()
        await lab.rules.clear()
        for name in ("broker-1", "broker-2"):
            saved = await lab.saved(name)
            assert "NEMESIS" not in saved
            assert "nemesis" not in saved
            assert "tbf" not in saved
        assert "-A INPUT -s 192.0.2.7/32 -j DROP" in await lab.saved("broker-2")

    play(tmp_path, scene)


def test_what_a_dead_harness_left_is_cleared(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        await lab.rules.cut(links(("broker-1", "broker-2")))
        there = lab.machines["broker-2"].namespace
        await there.run("iptables", "-I", "INPUT", "-j", "NEMESIS-IN")  # called twice
        await packet_rules._clear(there)
        assert "NEMESIS" not in await lab.saved("broker-2")
        await packet_rules._clear(there)
        assert await asyncio.to_thread(lab.heard) == EVERYBODY

    play(tmp_path, scene)


async def _with_a_lost_handler(lab: Laboratory, signal_number: int) -> None:
    slow = links(("broker-1", "broker-2"))
    await lab.rules.delay(slow, delay_ms=50)
    pid = lab.rules._handler.pid
    assert pid is not None
    os.kill(pid, signal_number)
    lost = set(EVERYBODY) - {("broker-1", "broker-2")}
    assert await asyncio.to_thread(lab.heard) == lost
    with pytest.raises(FaultLost, match="the packet handler"):
        await lab.rules.delay(slow, delay_ms=0)
    assert await asyncio.to_thread(lab.heard) == EVERYBODY
    with pytest.raises(FaultLost, match="the packet handler"):
        await lab.rules.impair(slow, Impairment(duplication=0.5))
    await lab.rules.cut(links(("broker-2", "broker-1")))
    assert await asyncio.to_thread(lab.heard) == EVERYBODY - {("broker-2", "broker-1")}


def test_a_handler_that_dies_loses_its_faults_and_says_so(tmp_path: Path) -> None:
    play(tmp_path, lambda lab: _with_a_lost_handler(lab, signal.SIGKILL))


def test_no_link_stays_cut_because_the_heal_of_another_one_met_a_dead_handler(
    tmp_path: Path,
) -> None:
    async def scene(lab: Laboratory) -> None:
        await lab.rules.delay(links(("broker-1", "broker-2"), ("client-1", "broker-1")), delay_ms=1)
        assert lab.rules._handler.pid is not None
        os.kill(lab.rules._handler.pid, signal.SIGKILL)
        assert ("client-1", "broker-1") not in await asyncio.to_thread(lab.heard)
        with pytest.raises(FaultLost, match="the packet handler"):
            await lab.rules.delay(links(("broker-1", "broker-2")), delay_ms=0)
        assert await asyncio.to_thread(lab.heard) == EVERYBODY

    play(tmp_path, scene)


def test_a_handler_that_hangs_loses_its_faults_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(lab: Laboratory) -> None:
        await lab.rules.delay(links(("broker-1", "broker-2")), delay_ms=50)
        monkeypatch.setattr(handler_process, "REPLY_TIMEOUT_S", 1.0)  # its start may take longer
        await _with_a_lost_handler(lab, signal.SIGSTOP)

    play(tmp_path, scene)


def test_a_link_between_two_clients_cannot_be_ruled(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        with pytest.raises(RuntimeFailure, match="there is no rule for the link"):
            await lab.rules.cut(links(("client-1", "client-1")))

    play(tmp_path, scene)


def test_no_rule_ever_goes_into_this_machines_own_network() -> None:
    with pytest.raises(NamespaceError, match="has no network namespace of its own"):
        Namespace(os.getpid())
    with pytest.raises(NamespaceError, match="cannot be opened"):
        Namespace(2**22 + 1)


def test_a_socket_is_opened_in_the_namespace_and_the_thread_comes_back(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        before = own_network()
        broker = lab.machines["broker-1"]
        with broker.namespace.socket(socket.AF_INET, socket.SOCK_STREAM) as there:
            there.bind((broker.host, 0))  # an address that only that namespace has
        assert own_network() == before

    play(tmp_path, scene)

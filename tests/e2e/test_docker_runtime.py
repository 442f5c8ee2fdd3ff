"""The reference in containers: every capability, seen from outside in ZooKeeper, over the wire and at the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from nemesis.history.zookeeper_ensemble import merge
from nemesis.history.zookeeper_log import read_log
from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Link
from nemesis.interfaces.unsupported import supported
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker import addresses
from nemesis.runtimes.docker.compose_file import disk_volume
from nemesis.runtimes.docker.disks import loop
from nemesis.runtimes.docker.machine import packet_features
from nemesis.runtimes.docker.runtime import DockerRuntime
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import read_journals
from tests.e2e.docker_machine import build_image, engine, needs_docker, run_id_of, things
from tests.e2e.onlooker import PROBE_TIMEOUT_S, SILENCE_S, Watcher, join_and_leave, stall_a_follower

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True), needs_docker]

PROPERTIES = {
    "zookeeper.session.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 200,
    "replica.fetch.backoff.ms": 200,
}


@pytest.fixture(scope="module", autouse=True)
def _machine() -> None:
    """Neither the image's build nor the kernel's examination is the cluster's start."""
    build_image()
    packet_features()


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))


def runtime_in(run_directory: Path, *, brokers: int = 3) -> DockerRuntime:
    run_directory.mkdir(parents=True, exist_ok=True)
    config = ClusterConfig(
        broker_count=brokers,
        client_count=2,
        run_directory=run_directory,
        broker_properties=PROPERTIES,
    )
    return DockerRuntime(config, packet_features())


@asynccontextmanager
async def running(run_directory: Path) -> AsyncIterator[tuple[DockerRuntime, Watcher]]:
    runtime = runtime_in(run_directory)
    await runtime.lifecycle.start()
    try:
        watcher = await asyncio.to_thread(Watcher, runtime.cluster.zookeeper_connect())
        try:
            await watcher.until(lambda: watcher.registered() == {1, 2, 3})
            await watcher.until(lambda: watcher.controller() is not None)
            yield runtime, watcher
        finally:
            await asyncio.to_thread(watcher.close)
    finally:
        await runtime.lifecycle.stop()
        await runtime.lifecycle.collect()


def test_every_fault_has_its_effect_and_heals(tmp_path: Path) -> None:
    run = tmp_path / "run"

    async def scene() -> None:
        async with running(run) as (runtime, watcher):
            await addresses_of_their_own(runtime)
            await cut_from_zookeeper(runtime, watcher)
            await kill_and_restart_the_controller(runtime, watcher)
            await a_cut_outlives_a_restart(runtime)
            await pause_and_resume(runtime, watcher)
            await end_a_session(runtime, watcher)
            await stall_a_follower(runtime, watcher)
            await join_and_leave(runtime, watcher)

    asyncio.run(scene())
    assert read_journals() == []
    raw = run / "raw"
    brokers = [f"broker-{number}" for number in (1, 2, 3, 4)]
    assert {path.name for path in raw.glob("*.jsonl")} == {f"{node}.jsonl" for node in brokers}
    members = [read_log(raw / "zookeeper" / f"zookeeper-{n}" / "version-2") for n in (1, 2, 3)]
    merged = merge(members)
    assert merged.problems == []
    assert len(merged.transactions) > 20
    assert len({member.current_epoch for member in members}) == 1
    nodes = [*brokers, *(f"zookeeper-{number}" for number in (1, 2, 3))]
    assert {node for node in nodes if (run / "logs" / f"{node}.log").stat().st_size} == set(nodes)
    assert set(yaml.safe_load((run / "compose.yaml").read_text())["services"]) == set(nodes)


async def addresses_of_their_own(runtime: DockerRuntime) -> None:
    for source in ("client-1", "client-2", "broker-2", "zookeeper-3"):
        assert await runtime.network.probe(source, "broker-1", timeout_s=PROBE_TIMEOUT_S)
        assert await runtime.network.probe(source, "zookeeper-1", timeout_s=PROBE_TIMEOUT_S)
    with pytest.raises(RuntimeFailure, match="there is no node 'broker-4'"):
        await runtime.processes.kill("broker-4")


async def cut_from_zookeeper(runtime: DockerRuntime, watcher: Watcher) -> None:
    """Its session expires, though it lives and its peers still reach it; it comes back by itself."""
    links = frozenset(
        Link(*pair)
        for member in runtime.cluster.zookeepers
        for pair in (("broker-1", member), (member, "broker-1"))
    )
    await runtime.network.cut(links)
    assert not await runtime.network.probe("broker-1", "zookeeper-1", timeout_s=SILENCE_S)
    assert await runtime.network.probe("broker-2", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    await watcher.until(lambda: watcher.registered() == {2, 3})
    assert runtime.processes.is_alive("broker-1")
    assert sum(c.held_bytes for c in (await runtime.network.counters(links)).values()) > 0
    await runtime.network.restore(links)
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})


async def kill_and_restart_the_controller(runtime: DockerRuntime, watcher: Watcher) -> None:
    await watcher.until(lambda: watcher.controller() is not None)
    old = await asyncio.to_thread(watcher.controller)
    node = f"broker-{old}"
    killed = await runtime.processes.kill(node)
    assert killed["dead"]
    assert killed["container"].endswith(f"-{node}")
    assert not runtime.processes.is_alive(node)
    assert not await runtime.network.probe(node, "zookeeper-1", timeout_s=SILENCE_S)
    await watcher.until(lambda: watcher.controller() not in (None, old))
    started = await runtime.processes.restart(node)
    assert started["answered"]
    assert started["pid"] != killed["pid"]
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})


async def a_cut_outlives_a_restart(runtime: DockerRuntime) -> None:
    link = frozenset({Link("client-1", "broker-1"), Link("broker-2", "broker-1")})
    await runtime.network.cut(link)
    await runtime.processes.kill("broker-1")
    assert (await runtime.processes.restart("broker-1"))["answered"]
    assert not await runtime.network.probe("client-1", "broker-1", timeout_s=SILENCE_S)
    assert not await runtime.network.probe("broker-2", "broker-1", timeout_s=SILENCE_S)
    assert await runtime.network.probe("client-2", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    await runtime.network.restore(link)
    assert await runtime.network.probe("client-1", "broker-1", timeout_s=PROBE_TIMEOUT_S)


async def pause_and_resume(runtime: DockerRuntime, watcher: Watcher) -> None:
    assert (await runtime.processes.pause("broker-2"))["paused"]
    assert runtime.processes.is_alive("broker-2")
    assert not await runtime.network.probe("client-1", "broker-2", timeout_s=SILENCE_S)
    await watcher.until(lambda: watcher.registered() == {1, 3})
    assert not (await runtime.processes.resume("broker-2"))["paused"]
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})
    assert await runtime.network.probe("client-1", "broker-2", timeout_s=PROBE_TIMEOUT_S)


async def end_a_session(runtime: DockerRuntime, watcher: Watcher) -> None:
    async with supported(runtime.ensemble).admin() as zookeeper:
        stat = await zookeeper.exists("/brokers/ids/3")
        assert stat is not None
        assert await zookeeper.end_session(stat.ephemeral_owner)
        again = await zookeeper.exists("/brokers/ids/3")
        assert again is None or again.ephemeral_owner != stat.ephemeral_owner
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})


def test_members_of_the_ensemble_one_by_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path / "run") as (runtime, watcher):
            members = await supported(supported(runtime.ensemble).members).states()
            assert sorted(members) == runtime.cluster.zookeepers
            assert sorted(m.mode for m in members.values()) == ["follower", "follower", "leader"]
            (epoch,) = {member.epoch for member in members.values()}
            async with supported(runtime.ensemble).admin() as zookeeper:
                owners = {
                    stat.ephemeral_owner
                    for broker in (1, 2, 3)
                    if (stat := await zookeeper.exists(f"/brokers/ids/{broker}")) is not None
                }
                assert len(owners) == 3
                served = {
                    session
                    for member in (
                        await supported(supported(runtime.ensemble).members).states()
                    ).values()
                    for session in member.sessions
                }
                assert owners < served

                leader = next(node for node in members if members[node].mode == "leader")
                await runtime.processes.kill(leader)
                now = await until_led(runtime, without=leader)
                assert {member.epoch for member in now.values()} == {epoch + 1}
                await watcher.until(lambda: watcher.registered() == {1, 2, 3})
                assert (await runtime.processes.restart(leader))["answered"]

                follower = next(node for node in now if now[node].mode == "follower")
                await runtime.processes.pause(follower)
                assert follower not in await supported(supported(runtime.ensemble).members).states()
                assert await zookeeper.children("/brokers/ids") is not None
                await runtime.processes.resume(follower)
                await until_led(runtime, without=None)

    asyncio.run(scene())


async def until_led(
    runtime: DockerRuntime, *, without: str | None
) -> Mapping[str, ZooKeeperMember]:
    """Wait until all members but one serve clients, one of them as leader."""
    wanted = set(runtime.cluster.zookeepers) - {without}
    async with asyncio.timeout(30.0):
        while True:
            members = await supported(supported(runtime.ensemble).members).states()
            if set(members) == wanted and "leader" in {m.mode for m in members.values()}:
                return members
            await asyncio.sleep(0.1)


def test_two_clusters_do_not_meet_and_leave_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        first, second = (runtime_in(tmp_path / name, brokers=1) for name in ("one", "two"))
        await asyncio.gather(first.lifecycle.start(), second.lifecycle.start())
        try:
            first_id, two = (run_id_of(tmp_path / name) for name in ("one", "two"))
            assert things(first_id) == all_of(first, first_id)
            assert things(two) == all_of(second, two)
            assert first.cluster.address("broker-1") != second.cluster.address("broker-1")
            everything = frozenset({Link("client-1", "broker-1"), Link("broker-1", "client-1")})
            await first.network.cut(everything)
            assert not await first.network.probe("client-1", "broker-1", timeout_s=SILENCE_S)
            assert await second.network.probe("client-1", "broker-1", timeout_s=PROBE_TIMEOUT_S)
            await first.processes.pause("broker-1")
            await first.lifecycle.stop()
            assert things(first_id) == []
            await first.lifecycle.stop()
            assert things(two) == all_of(second, two)
            assert second.processes.is_alive("broker-1")
            assert await second.network.probe("client-1", "broker-1", timeout_s=PROBE_TIMEOUT_S)
        finally:
            await asyncio.gather(first.lifecycle.stop(), second.lifecycle.stop())
        assert things(two) == []

    asyncio.run(scene())
    assert read_journals() == []


def all_of(runtime: DockerRuntime, run_id: str) -> list[str]:
    """Return what a running cluster has at the engine."""
    return sorted(
        [f"network nemesis-{run_id}-network"]
        + [
            f"{kind} nemesis-{run_id}-{node}"
            for kind in ("container", "volume")
            for node in (*runtime.cluster.brokers, *runtime.cluster.zookeepers)
        ]
        + [f"volume nemesis-{run_id}-{disk_volume(node)}" for node in runtime.cluster.brokers]
        + [f"disk {device}" for device in loop.devices_of(run_id)]
    )


def test_without_a_free_subnet_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = things()
    with engine() as client:
        taken = client.networks.create("nemesis-test-taken", labels={"nemesis.test": "taken"})
        try:
            taken.reload()
            (pool,) = taken.attrs["IPAM"]["Config"]
            monkeypatch.setattr(addresses, "TEST_NETWORKS", IPv4Network(pool["Subnet"]))
            monkeypatch.setattr(addresses, "routes", list)
            runtime = runtime_in(tmp_path / "run")
            with pytest.raises(MissingRequirement, match=r"every subnet of .* is taken"):
                asyncio.run(runtime.lifecycle.start())
        finally:
            taken.remove()
    assert things() == before
    assert read_journals() == []

"""``LocalRuntime`` with a real ZooKeeper, the real proxy, and small broker processes in place of a target."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from nemesis.interfaces.brokers import SteadyStart
from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.interfaces.links import Link
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.local.zookeeper_server import data_directory
from nemesis.support.errors import MissingRequirement, UsageError
from nemesis.support.journal import read_journals
from nemesis.targets import TARGETS
from tests.nemesis.runtimes.small_target import SmallTarget

PROBE_TIMEOUT_S = 5.0
SILENCE_S = 0.3

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setitem(TARGETS._entries, "small", SmallTarget())


def config(tmp_path: Path, **changes: Any) -> ClusterConfig:
    whole: dict[str, Any] = {
        "broker_count": 2,
        "client_count": 1,
        "run_directory": tmp_path / "run",
        "target": "small",
    }
    return ClusterConfig(**{**whole, **changes})


@asynccontextmanager
async def running(tmp_path: Path) -> AsyncIterator[LocalRuntime]:
    runtime = LocalRuntime(config(tmp_path))
    await runtime.lifecycle.start()
    try:
        yield runtime
    finally:
        await runtime.lifecycle.stop()


def test_a_cluster_from_start_to_end(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path) as runtime:
            await links_and_probes(runtime)
            await lives_and_deaths(runtime)
            [(_, entry)] = read_journals()
            assert entry is not None
            pids = [process.pid for process in entry.processes]
            assert sorted(process.name for process in entry.processes) == [
                "broker-1",
                "broker-2",
                "proxy",
                "zookeeper-1",
            ]
            await runtime.processes.pause("broker-2")
        assert not any(map(psutil.pid_exists, pids))
        assert read_journals() == []
        assert list((tmp_path / "leases").iterdir()) == []
        await runtime.lifecycle.stop()
        await runtime.lifecycle.collect()
        logs = list((tmp_path / "run/raw/zookeeper/zookeeper-1/version-2").glob("log.*"))
        source = data_directory(tmp_path / "run", "zookeeper-1") / "version-2"
        assert [log.read_bytes() for log in logs] == [
            log.read_bytes() for log in source.glob("log.*")
        ]
        assert (tmp_path / "run/raw/broker-1.jsonl").exists()

    asyncio.run(scene())


async def links_and_probes(runtime: LocalRuntime) -> None:
    there, back = Link("broker-1", "zookeeper-1"), Link("zookeeper-1", "broker-1")

    async def crosses(source: str, target: str, timeout_s: float = PROBE_TIMEOUT_S) -> bool:
        return await runtime.network.probe(source, target, timeout_s=timeout_s)

    assert await crosses("broker-1", "broker-2")
    assert await crosses("broker-1", "zookeeper-1")
    assert await crosses("client-1", "broker-1")
    await runtime.network.cut(frozenset({back}))
    assert not await crosses("broker-1", "zookeeper-1", SILENCE_S)
    assert await crosses("broker-2", "zookeeper-1")
    counted = await runtime.network.counters(frozenset({there, back}))
    assert counted[back].held_bytes > 0
    assert counted[there].held_bytes == 0
    await runtime.network.restore(frozenset({back}))
    assert await crosses("broker-1", "zookeeper-1")


async def lives_and_deaths(runtime: LocalRuntime) -> None:
    assert (await runtime.processes.kill("broker-1"))["dead"]
    assert not runtime.processes.is_alive("broker-1")
    assert not await runtime.network.probe("broker-2", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    assert (await runtime.processes.restart("broker-1"))["answered"]
    assert await runtime.network.probe("broker-2", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    await runtime.processes.pause("broker-1")
    assert runtime.processes.is_alive("broker-1")
    assert not await runtime.network.probe("broker-2", "broker-1", timeout_s=SILENCE_S)
    await runtime.processes.resume("broker-1")
    assert await runtime.network.probe("broker-2", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    await runtime.processes.kill("zookeeper-1")
    assert (await runtime.processes.restart("zookeeper-1"))["answered"]
    for wrong in ("broker-3", "client-1"):
        with pytest.raises(RuntimeFailure, match=f"there is no node '{wrong}'"):
            await runtime.processes.kill(wrong)


def test_a_broker_that_exits_undoes_the_start(tmp_path: Path) -> None:
    async def scene() -> None:
        runtime = LocalRuntime(config(tmp_path, broker_properties={"exit": True}))
        with pytest.raises(RuntimeFailure, match="broker-1 exited with code 1"):
            await runtime.lifecycle.start()
        assert read_journals() == []
        assert not any("zookeeper-1.cfg" in " ".join(p.cmdline()) for p in children())

    asyncio.run(scene())


def test_a_broker_that_may_exit_while_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first start succeeds, the next two do not."""
    may_exit = SmallTarget({SteadyStart: Unsupported("it exits with its session")})
    properties = {"exit_at_starts": [2, 3]}

    async def restarted() -> dict[str, Any]:
        runtime = LocalRuntime(config(tmp_path, broker_count=1, broker_properties=properties))
        await runtime.lifecycle.start()
        try:
            await runtime.processes.kill("broker-1")
            return await runtime.processes.restart("broker-1")
        finally:
            await runtime.lifecycle.stop()

    with pytest.raises(NodeExited, match="broker-1 exited with code 1: told to exit"):
        asyncio.run(restarted())
    (tmp_path / "run" / "raw" / "broker-1.starts").unlink()
    monkeypatch.setitem(TARGETS._entries, "small", may_exit)
    again = asyncio.run(restarted())
    assert (again["answered"], again["starts"]) == (True, 3)


def test_no_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    async def scene() -> None:
        with pytest.raises(MissingRequirement, match=r"no Java runtime was found: install a Java"):
            await LocalRuntime(config(tmp_path)).lifecycle.start()
        assert read_journals() == []

    asyncio.run(scene())


def test_bad_configuration_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown target 'kafak' .*: allowed are .*reference"):
        LocalRuntime(config(tmp_path, target="kafak"))
    with pytest.raises(UsageError, match=r"-3 brokers are not possible"):
        LocalRuntime(config(tmp_path, broker_count=-3))
    with pytest.raises(
        UsageError, match=r"broker configuration: there is no property .num\.fingers."
    ):
        LocalRuntime(config(tmp_path, target="reference", broker_properties={"num.fingers": 10}))
    with pytest.raises(UsageError, match=r"broker.id is set by the runtime, leave it out"):
        LocalRuntime(config(tmp_path, target="reference", broker_properties={"broker.id": 1}))
    assert not (tmp_path / "run").exists()


def test_addresses_are_unknown_before_the_start(tmp_path: Path) -> None:
    runtime = LocalRuntime(config(tmp_path))
    assert runtime.cluster.brokers == ["broker-1", "broker-2"]
    with pytest.raises(RuntimeFailure, match="no addresses before its start"):
        bootstrap(runtime.cluster)


def test_two_clusters_do_not_meet(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path / "one") as first, running(tmp_path / "two") as second:
            assert first.cluster.address("broker-1") != second.cluster.address("broker-1")
            host = first.cluster.address("broker-1").host
            with socket.socket() as taken, pytest.raises(OSError, match="in use"):
                taken.bind((host, 9092))

    asyncio.run(scene())


def children() -> list[psutil.Process]:
    result = psutil.Process().children(recursive=True)
    return [process for process in result if process.status() != psutil.STATUS_ZOMBIE]

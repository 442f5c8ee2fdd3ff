"""The reference on the local runtime: every capability, seen from outside in ZooKeeper and over the wire."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.links import CONTROL_API_KEYS, Link
from nemesis.running.clean import clean
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local import LocalRuntime
from nemesis.support.journal import read_journals
from tests.e2e.onlooker import (
    PROBE_TIMEOUT_S,
    SILENCE_S,
    Watcher,
    create_topic,
    join_and_leave,
    stall_a_follower,
    until_complete,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

LEADER_AND_ISR_API_KEY = CONTROL_API_KEYS[0]
PROPERTIES: dict[str, object] = {
    "zookeeper.session.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 200,
    "replica.fetch.backoff.ms": 200,
}


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))


CONTROL_PLANE = {
    "control.plane.listener.name": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


@asynccontextmanager
async def running(
    tmp_path: Path, properties: Mapping[str, object] | None = None
) -> AsyncIterator[tuple[LocalRuntime, Watcher]]:
    runtime = LocalRuntime(
        ClusterConfig(
            broker_count=3,
            client_count=1,
            run_directory=tmp_path / "run",
            broker_properties=PROPERTIES | dict(properties or {}),
        )
    )
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


def test_the_links_know_what_the_controller_says_over_a_listener_of_its_own(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path, CONTROL_PLANE) as (runtime, watcher):
            servers = ",".join(map(str, bootstrap(runtime.cluster)))
            await asyncio.to_thread(until_complete, servers)
            controller = f"broker-{watcher.controller()}"
            others = [broker for broker in runtime.cluster.brokers if broker != controller]
            links = frozenset(Link(controller, other, LEADER_AND_ISR_API_KEY) for other in others)
            await runtime.network.cut(links)
            creating = asyncio.create_task(asyncio.to_thread(create_topic, servers, "t"))

            async def are_held() -> bool:
                counters = await runtime.network.counters(links)
                return all(counters[link].held_bytes for link in links)

            async with asyncio.timeout(PROBE_TIMEOUT_S * 2):
                while not await are_held():
                    await asyncio.sleep(0.05)
            assert watcher.isr("t") == {1, 2, 3}, "decided, but nobody has been told"
            await runtime.network.restore(links)
            await creating

    asyncio.run(scene())
    for broker in (1, 2, 3):
        assert "CONTROLLER://" in (tmp_path / "run" / "logs" / f"broker-{broker}.log").read_text()


def test_every_fault_has_its_effect_and_heals(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(tmp_path) as (runtime, watcher):
            await cut_from_zookeeper(runtime, watcher)
            await kill_and_restart_the_controller(runtime, watcher)
            await pause_and_resume(runtime, watcher)
            await stall_a_follower(runtime, watcher)
            await join_and_leave(runtime, watcher)
        assert read_journals() == []

    asyncio.run(scene())
    raw = tmp_path / "run" / "raw"
    assert sorted(path.name for path in raw.glob("*.jsonl")) == [
        "broker-1.jsonl",
        "broker-2.jsonl",
        "broker-3.jsonl",
        "broker-4.jsonl",
    ]
    assert list((raw / "zookeeper/zookeeper-1/version-2").glob("log.*"))


async def cut_from_zookeeper(runtime: LocalRuntime, watcher: Watcher) -> None:
    """Its session expires, though it lives and its peers still reach it; it comes back by itself."""
    links = frozenset({Link("broker-1", "zookeeper-1"), Link("zookeeper-1", "broker-1")})
    await runtime.network.cut(links)
    assert not await runtime.network.probe("broker-1", "zookeeper-1", timeout_s=SILENCE_S)
    assert await runtime.network.probe("broker-2", "broker-1", timeout_s=PROBE_TIMEOUT_S)
    await watcher.until(lambda: watcher.registered() == {2, 3})
    assert runtime.processes.is_alive("broker-1")
    assert (await runtime.network.counters(links))[Link("broker-1", "zookeeper-1")].held_bytes > 0
    await runtime.network.restore(links)
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})


async def kill_and_restart_the_controller(runtime: LocalRuntime, watcher: Watcher) -> None:
    await watcher.until(lambda: watcher.controller() is not None)
    old = await asyncio.to_thread(watcher.controller)
    node = f"broker-{old}"
    assert (await runtime.processes.kill(node))["dead"]
    await watcher.until(lambda: watcher.controller() not in (None, old))
    assert (await runtime.processes.restart(node))["answered"]
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})


async def pause_and_resume(runtime: LocalRuntime, watcher: Watcher) -> None:
    await runtime.processes.pause("broker-2")
    assert not await runtime.network.probe("client-1", "broker-2", timeout_s=SILENCE_S)
    await watcher.until(lambda: watcher.registered() == {1, 3})
    await runtime.processes.resume("broker-2")
    await watcher.until(lambda: watcher.registered() == {1, 2, 3})
    assert await runtime.network.probe("client-1", "broker-2", timeout_s=PROBE_TIMEOUT_S)


HARNESS = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from nemesis.runtimes.config import ClusterConfig
    from nemesis.runtimes.local import LocalRuntime

    async def main() -> None:
        run = Path(sys.argv[1])
        config = ClusterConfig(broker_count=2, client_count=1, run_directory=run)
        runtime = LocalRuntime(config)
        await runtime.lifecycle.start()
        await runtime.processes.pause("broker-2")
        print("up", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
    """
)


def test_clean_ends_what_a_killed_harness_left(tmp_path: Path) -> None:
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    assert harness.stdout is not None
    with harness, harness.stdout:
        assert harness.stdout.readline() == b"up\n"
        assert clean().live_runs == 1
        harness.kill()
    [(_, entry)] = read_journals()
    assert entry is not None
    nodes = [record for record in entry.processes if record.name != "proxy"]
    assert [record.name for record in nodes if record.find() is None] == []
    report = clean()
    assert report.is_clean
    assert len(report.processes) >= len(nodes)
    assert [record.name for record in entry.processes if record.find() is not None] == []
    assert not any(map(psutil.pid_exists, (record.pid for record in nodes)))
    assert (report.leases, read_journals()) == (entry.leases, [])
    again = clean()
    assert (again.runs, again.processes, again.leases) == ((), (), ())

"""What every runtime must do when a fault strikes, whatever its network and its processes are made of.

``conform`` is given a cluster under load and carries every fault out that its runtime says it can do:

* the symbolic target resolves to the node that it names, as ZooKeeper says and the same seed chooses;
* after a partition exactly the named directions are blocked, after its heal none is;
* each fault has a measured effect, and is seen to be undone.

What a direction carries is told by the runtime's counters while every node calls every other one. Nothing may cross a
direction that is named, and nothing be kept on one that is not. That something crosses is asked where a call can be
completed: between two nodes of which neither direction is cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, get_args

from history.recorder import Recorder
from nemesis.faults import FAULTS, Fault, grudge, targets
from nemesis.faults.base import DrawRange, Measured, Place, Strike, TargetUnresolved
from nemesis.faults.cluster_view import ClusterView
from nemesis.faults.partition import Partition, ShapeName
from nemesis.runtimes.base import Link, Runtime
from workloads import WORKLOADS, Workload, WorkloadContext

BROKER_PROPERTIES = {
    "zookeeper.session.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 2_000,
    "controller.socket.timeout.ms": 2_000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
}
LOAD = {"producers": 2, "consumers": 2, "send_interval_ms": 100, "poll_interval_ms": 100}
SEED = 7
PATIENCE_S = 60.0
POLL_INTERVAL_S = 0.25
BLOCKED_TIMEOUT_S = 0.6
OPEN_TIMEOUT_S = 3.0
SPAN = DrawRange(1.0, 1.0)
SYMBOLS = ("controller", "bystander", "leader", "follower", "one", "minority", "majority", "all")


class Deviation(AssertionError):
    """A fault did not do what it says."""


async def conform(runtime: Runtime, clock_ns: Callable[[], int]) -> list[str]:
    """Carry every fault out on a started runtime; returns the kinds that did what they say, in their order.

    Raises ``Deviation`` for the first one that did not.
    """
    async with runtime.zookeeper_admin() as zookeeper, _load(runtime, clock_ns):
        place = Place.of(runtime, ClusterView(zookeeper))
        await _settle(place)
        await targets_resolve(place)
        await partitions_block_what_they_name(place)
        kinds = [name for name, kind in FAULTS.items() if kind.capability in runtime.capabilities]
        for name in kinds:
            await _settle(place)
            await strike(_example(name, runtime), place)
        return kinds


async def targets_resolve(place: Place) -> None:
    """Every symbol names the nodes that ZooKeeper and the seed say."""
    for symbol in (*SYMBOLS, place.runtime.brokers[1]):
        before = await place.view.snapshot()
        found = await targets.resolve(symbol, place, Random(SEED))
        after = await place.view.snapshot()
        wanted = [
            targets.choose(
                targets.parse(symbol),
                free=place.runtime.brokers,
                snapshot=snapshot,
                total=len(place.runtime.brokers),
                rng=Random(SEED),
            )
            for snapshot in (before, after)
        ]
        _require(found in wanted, f"{symbol} is {found}, not {wanted[0]}")
    controller = await place.view.controller_now()
    assert controller is not None
    [node] = await targets.resolve("controller", place, Random(SEED))
    _require(node == f"broker-{controller.broker_id}", f"the controller is {controller}")


async def partitions_block_what_they_name(place: Place) -> None:
    """Each shape, in each direction: exactly its links are blocked, and none after the heal."""
    for fault in _partitions():
        found = await _aim(fault, place)
        named = grudge.links(
            {node: frozenset(deaf) for node, deaf in found.intent["grudge"].items()}
        )
        applied = await found.apply()
        _require(applied.is_effective, f"{fault} had no effect: {applied}")
        seen = await _traffic(place, timeout_s=BLOCKED_TIMEOUT_S)
        await found.undo()
        _require(not seen.crossed & named, f"{fault} let pass: {seen.crossed & named}")
        _require(seen.held <= named, f"{fault} held too much: {seen.held - named}")
        missing = _complete(place.runtime, named) - seen.crossed
        _require(not missing, f"{fault} cut {missing}")
        await _until(found.verify, f"{fault} is not healed")
        await _settle(place)
        seen = await _traffic(place, timeout_s=OPEN_TIMEOUT_S)
        _require(not seen.held, f"{fault} still holds {seen.held}")
        missing = _complete(place.runtime, frozenset()) - seen.crossed
        _require(not missing, f"{fault} left {missing} cut")


async def strike(fault: Fault, place: Place) -> None:
    """Aim, apply, undo and verify."""
    found = await _aim(fault, place)
    place.touched.update(found.targets)
    applied = await found.apply()
    await found.undo()
    place.touched.subtract(found.targets)
    _require(applied.is_effective, f"{fault} on {found.targets} had no effect: {applied.detail}")
    await _until(found.verify, f"{fault} on {found.targets} is not seen to be healed")


def _partitions() -> Iterator[Partition]:
    for shape in get_args(ShapeName):
        directed = shape in ("one-way", "from-zookeeper", "from-clients")
        for direction in ("deaf", "mute") if directed else ("both",):
            yield Partition(shape=shape, target="broker-2", direction=direction)
    yield Partition(shape="one-node", target="controller", zookeeper="majority")


def _example(name: str, runtime: Runtime) -> Fault:
    """Return a fault of the kind that suits the cluster and strikes now."""
    nodes = frozenset([*runtime.brokers, *runtime.zookeepers])
    for seed in count():
        fault = FAULTS[name].draw(Random(seed), SPAN)
        if getattr(fault, "when", "now") == "now" and getattr(fault, "target", "") != "majority":
            fault.check(nodes)
            return fault
    raise AssertionError


@dataclass(frozen=True, slots=True)
class Traffic:
    """On which links something came through meanwhile, and on which something was kept from it."""

    crossed: frozenset[Link]
    held: frozenset[Link]


async def _traffic(place: Place, *, timeout_s: float) -> Traffic:
    """Let everybody call everybody."""
    links = _links(place.runtime)
    before = await place.runtime.counters(links)
    await place.probe_all(_calls(place.runtime), timeout_s=timeout_s)
    after = await place.runtime.counters(links)
    return Traffic(
        crossed=frozenset(
            link for link in links if after[link].forwarded_bytes > before[link].forwarded_bytes
        ),
        held=frozenset(link for link in links if after[link].held_bytes > before[link].held_bytes),
    )


def _complete(runtime: Runtime, cut: frozenset[Link]) -> frozenset[Link]:
    """Return the links between nodes of which neither direction is cut."""
    return frozenset(
        link for link in _links(runtime) if not cut & {link, Link(link.target, link.source)}
    )


def _links(runtime: Runtime) -> frozenset[Link]:
    """Return all that can carry anything: calls and replies."""
    return frozenset(link for a, b in _calls(runtime) for link in (Link(a, b), Link(b, a)))


def _calls(runtime: Runtime) -> list[tuple[str, str]]:
    """Return who may call whom."""
    brokers, zookeepers = runtime.brokers, runtime.zookeepers
    callers = [*runtime.clients, *brokers]
    return [(a, b) for a in callers for b in (*brokers, *zookeepers) if a != b]


async def _aim(fault: Fault, place: Place) -> Strike:
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            return await fault.aim(place, Random(SEED))
        except TargetUnresolved as error:
            _require(asyncio.get_running_loop().time() < deadline, f"{fault}: {error}")
            await asyncio.sleep(POLL_INTERVAL_S)


async def _until(verify: Callable[[], Any], complaint: str) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    measured: Measured = await verify()
    while not measured.is_effective:
        _require(asyncio.get_running_loop().time() < deadline, f"{complaint}: {measured.detail}")
        await asyncio.sleep(POLL_INTERVAL_S)
        measured = await verify()


async def _settle(place: Place) -> None:
    """Wait until every broker is registered, a controller is there and every ISR is full."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        seen = await place.view.snapshot()
        is_whole = seen.controller is not None and len(seen.brokers) == len(place.runtime.brokers)
        states = seen.partitions.values()
        if is_whole and states and all(set(s.isr) == set(s.replicas) for s in states):
            return
        _require(asyncio.get_running_loop().time() < deadline, f"the cluster is not whole: {seen}")
        await asyncio.sleep(POLL_INTERVAL_S)


@asynccontextmanager
async def _load(runtime: Runtime, clock_ns: Callable[[], int]) -> Any:
    """Clients that produce and consume meanwhile; what they see is nobody's concern here."""
    workload: Workload = WORKLOADS["produce-consume"](
        WorkloadContext(
            bootstrap=[(address.host, address.port) for address in runtime.bootstrap()],
            client_hosts=[runtime.client_host(client) for client in runtime.clients],
            recorder=lambda process: Recorder(lambda _: None, process=process, clock=clock_ns),
            rng=Random(SEED),
            codec=runtime.codec,
        ),
        LOAD,
    )
    await workload.setup()
    workload.start()
    try:
        yield
    finally:
        await workload.stop()


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise Deviation(complaint)

"""What every runtime must do when a fault strikes, whatever its network and its processes are made of.

``conform`` is given a cluster and carries every kind of fault out on it, all in one life of the cluster and under load:

* the same symbolic target is the same node on every runtime, for the same seed and the same view of the cluster; and
  ``controller`` is who ZooKeeper says;
* while a fault is in force, exactly what it names is other than usual; after its heal nothing is. Everybody calls
  everybody, and counters are read before and after (``conformance_sight``);
* the fault's own measurement says that it has an effect, and then that it is undone;
* a kind that the runtime lacks on every machine is refused with the reason that the runtime declares.

To add a kind, say in ``conformance_effects`` what it looks like from outside, and run the suite. What a runtime lacks
it declares itself (``UNSUPPORTED``), and from that the table in ``docs/faults.md`` is made (``nemesis.faults.pages``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, get_args

from nemesis.faults import FAULTS, Fault, selectors
from nemesis.faults.availability import kinds_of
from nemesis.faults.base import DrawRange, FaultContext, Measured, SelectorUnresolved, Strike
from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.faults.partition import Partition, ShapeName
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.history.recorder import Recorder
from nemesis.interfaces.clients import ClientProcesses
from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.runtime import Runtime, first_missing, missing_of
from nemesis.interfaces.unsupported import Unsupported, supported
from nemesis.running.client_processes import processes_of
from nemesis.support.node_names import node_of
from nemesis.workloads import WORKLOADS, Workload, WorkloadContext
from tests.e2e.conformance_effects import NOTHING, Effect, effect_of
from tests.e2e.conformance_sight import Counts, against, calls_of, count, look

BROKERS, CLIENTS, LOG_DIRS = 3, 2, 2
BROKER_PROPERTIES = {
    "zookeeper.session.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 2_000,
    "controller.socket.timeout.ms": 2_000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    # So that each strike finds leaders everywhere, however the one before it has gathered them.
    "leader.imbalance.check.interval.seconds": 1,
    "leader.imbalance.per.broker.percentage": 0,
}
LOAD_NAME = "produce-consume"
LOAD = {"producers": 2, "consumers": 2, "send_interval_ms": 100, "poll_interval_ms": 100}
SEED = 7
PATIENCE_S = 60.0
SIGHT_PATIENCE_S = 10.0
POLL_INTERVAL_S = 0.2
SPAN = DrawRange(1.0, 1.0)

STILL = ClusterSnapshot(
    controller=Ephemeral(broker_id=2, session=1, czxid=1),
    brokers={number: Ephemeral(number, session=number, czxid=number) for number in (1, 2, 3)},
    partitions={
        ("orders", 0): PartitionState(leader=3, leader_epoch=0, isr=(3, 1), replicas=(3, 1, 2)),
        ("orders", 1): PartitionState(leader=3, leader_epoch=0, isr=(3, 2), replicas=(3, 2, 1)),
        ("orders", 2): PartitionState(leader=1, leader_epoch=4, isr=(1,), replicas=(1, 2, 3)),
    },
)
"""A view of a cluster that stands still."""
RESOLVED = {
    "controller": ["broker-2"],
    "bystander": ["broker-3"],
    "leader": ["broker-3"],
    "follower": ["broker-2"],
    'leader("orders",2)': ["broker-1"],
    'follower("orders",0)': ["broker-1"],
    "one": ["broker-2"],
    "minority": ["broker-2"],
    "majority": ["broker-1", "broker-2"],
    "all": ["broker-1", "broker-2", "broker-3"],
    "broker-2": ["broker-2"],
}
"""Whom the symbols stand for in it, with ``SEED``."""


class Deviation(AssertionError):
    """A runtime did not do what every runtime must do."""


async def conform(
    runtime: Runtime, clock_ns: Callable[[], int], *, partitions: Iterable[Partition]
) -> list[str]:
    """Carry these partitions and every kind of fault out on a started runtime; return the kinds, in their order.

    Raises ``Deviation`` for the first one that did not do what it says.
    """
    async with (
        supported(runtime.ensemble).admin() as zookeeper,
        _load(runtime, clock_ns) as client_processes,
    ):
        context = FaultContext.of(
            runtime, ZooKeeperView(zookeeper), client_processes=client_processes
        )
        await _settle(context)
        await _must_look(context, NOTHING, await count(runtime))
        await symbols_resolve(context)
        for partition in partitions:
            await strike(partition, context)
        missing = missing_of(runtime)
        able = [name for name, kind in FAULTS.items() if first_missing(kind.needs, missing) is None]
        for name in able:
            await strike(_example(name, runtime), context)
        for name in sorted(FAULTS.keys() - kinds_of(runtime.name)):
            await _is_refused(_example(name, runtime), context)
        return able


async def symbols_resolve(context: FaultContext) -> None:
    """Every symbol names the nodes that it names on every runtime; the controller is who ZooKeeper says."""
    runtime = context.runtime
    still = FaultContext.of(runtime, _StillView())
    resolved = {symbol: await selectors.resolve(symbol, still, Random(SEED)) for symbol in RESOLVED}
    _require(resolved == RESOLVED, f"the symbols are {resolved}")
    snapshot = await context.view.snapshot()
    [controller] = await selectors.resolve("controller", context, Random(SEED))
    if snapshot == await context.view.snapshot() and snapshot.controller is not None:
        wanted = node_of(snapshot.controller.broker_id)
        _require(controller == wanted, f"the controller is {controller}, ZooKeeper says {wanted}")


def all_partitions() -> Iterator[Partition]:
    """Return each shape, in each of its directions."""
    for shape in get_args(ShapeName):
        directed = shape in ("one-way", "from-zookeeper", "from-clients")
        for direction in ("deaf", "mute") if directed else ("both",):
            yield Partition(shape=shape, selector="broker-2", direction=direction)
    yield Partition(shape="one-node", selector="controller", zookeeper="majority")


def some_partitions() -> Iterator[Partition]:
    """Return few that together cut each kind of link in one direction, and in both."""
    yield Partition(shape="majority-ring", selector="broker-2")
    yield Partition(shape="from-zookeeper", selector="broker-2", direction="deaf")
    yield Partition(shape="from-clients", selector="broker-2", direction="mute")
    yield Partition(shape="one-node", selector="controller", zookeeper="majority")


async def strike(fault: Fault, context: FaultContext) -> None:
    """Aim and apply, see the effect, undo, and see that nothing is left of it."""
    aimed = await _aim(fault, context)
    effect = effect_of(fault, aimed, context)
    context.touched.update(aimed.victims)
    before = await count(context.runtime)
    applied = await aimed.apply()
    _require(applied.is_effective, f"{fault} on {aimed.victims} had no effect: {applied.detail}")
    try:
        await _must_look(context, effect, before)
    except Deviation as deviation:
        raise Deviation(f"during {fault} on {aimed.victims}: {deviation}") from None
    await aimed.undo()
    context.touched.subtract(aimed.victims)
    healed = await count(context.runtime)
    await _until(aimed.verify, f"{fault} on {aimed.victims} is not seen to be healed")
    await _settle(context)
    try:
        await _must_look(context, NOTHING, healed)
    except Deviation as deviation:
        raise Deviation(f"after {fault} on {aimed.victims}: {deviation}") from None


async def _is_refused(fault: Fault, context: FaultContext) -> None:
    runtime = context.runtime
    try:
        # What it has noted by then concerns nobody else.
        await (await _aim(fault, FaultContext.of(runtime, context.view))).apply()
    except FaultUnsupported as refused:
        missing = first_missing(fault.needs, missing_of(runtime))
        _require(
            missing is not None and str(refused).endswith(f": {missing.reason}"),
            f"{fault} is refused with {str(refused)!r}, not because of {missing}",
        )
        return
    raise Deviation(f"{fault} is carried out, although the runtime lacks a part of {fault.needs}")


async def _must_look(context: FaultContext, effect: Effect, changed: Counts) -> None:
    """Look until all that must be seen is seen, and never what must not be."""
    deadline = asyncio.get_running_loop().time() + SIGHT_PATIENCE_S
    while True:
        sight = await look(context.runtime, effect, changed)
        verdict = against(effect, sight, calls_of(context.runtime))
        _require(not verdict.forbidden, "; ".join(verdict.forbidden))
        if not verdict.missing:
            return
        in_time = asyncio.get_running_loop().time() < deadline
        _require(in_time, "; ".join(verdict.missing))
        await asyncio.sleep(POLL_INTERVAL_S)


def _example(name: str, runtime: Runtime) -> Fault:
    """Return a fault of the kind that suits the cluster and strikes now."""
    nodes = frozenset([*runtime.cluster.brokers, *runtime.cluster.zookeepers])
    for seed in itertools.count():
        fault = FAULTS[name].draw(Random(seed), SPAN)
        if getattr(fault, "when", "now") == "now" and getattr(fault, "selector", "") != "majority":
            fault.check(nodes)
            return fault
    raise AssertionError


async def _aim(fault: Fault, context: FaultContext) -> Strike:
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            return await fault.aim(context, Random(SEED))
        except SelectorUnresolved as error:
            _require(asyncio.get_running_loop().time() < deadline, f"{fault}: {error}")
            await asyncio.sleep(POLL_INTERVAL_S)


async def _until(verify: Callable[[], Coroutine[Any, Any, Measured]], complaint: str) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while not (measured := await verify()).is_effective:
        _require(asyncio.get_running_loop().time() < deadline, f"{complaint}: {measured.detail}")
        await asyncio.sleep(POLL_INTERVAL_S)


async def _settle(context: FaultContext) -> None:
    """Wait until every broker is registered, somebody controls, and each partition is whole and led as preferred."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        snapshot = await context.view.snapshot()
        is_whole = snapshot.controller is not None and len(snapshot.brokers) == len(
            context.cluster.brokers
        )
        states = snapshot.partitions.values()
        is_led = all(s.leader == s.replicas[0] for s in states)
        if is_whole and states and is_led and all(set(s.isr) == set(s.replicas) for s in states):
            return
        _require(
            asyncio.get_running_loop().time() < deadline, f"the cluster is not whole: {snapshot}"
        )
        await asyncio.sleep(POLL_INTERVAL_S)


@asynccontextmanager
async def _load(
    runtime: Runtime, clock_ns: Callable[[], int]
) -> AsyncIterator[ClientProcesses | Unsupported]:
    """Clients that produce and consume meanwhile; what they see is nobody's concern here."""
    workload: Workload = WORKLOADS[LOAD_NAME](
        WorkloadContext(
            bootstrap=[(address.host, address.port) for address in bootstrap(runtime.cluster)],
            client_hosts=[
                runtime.cluster.client_host(client) for client in runtime.cluster.clients
            ],
            recorder=lambda process: Recorder(lambda _: None, process=process, clock=clock_ns),
            rng=Random(SEED),
            codec=runtime.cluster.codec,
        ),
        LOAD,
    )
    await workload.setup(timeout_s=20.0)
    workload.start()
    try:
        yield processes_of(workload, LOAD_NAME)
    finally:
        await workload.stop()


class _StillView(ZooKeeperView):
    """Says always the same."""

    def __init__(self) -> None:
        """Without a ZooKeeper."""

    async def snapshot(self) -> ClusterSnapshot:
        return STILL


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise Deviation(complaint)

"""Power cuts, disks and clocks: faults of machines, here of some that have a simulated disk and clock each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nemesis.faults import corrupt_tail
from nemesis.faults.base import DrawRange, Fault, FaultContext, SelectorUnresolved, Strike
from nemesis.faults.clock import ClockSkew
from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState
from nemesis.faults.corrupt_tail import CorruptTail
from nemesis.faults.disk import DiskFailure, DiskFull, LogDirFailure
from nemesis.faults.power_cut import PowerCut
from nemesis.interfaces.errors import NodeExited
from nemesis.simulation.clock import SimulatedWallClock
from nemesis.simulation.disk import SimulatedDisk
from nemesis.support import log_damage as damage
from nemesis.support.errors import UsageError
from tests.nemesis.faults.partial_runtime import runtime_of
from tests.reference.log.batches import batch

LOG_DIRS = ("a", "b")
BROKERS = ("broker-1", "broker-2", "broker-3")
NODES = frozenset(BROKERS)


class Time:
    now_s = 0.0

    def time(self) -> float:
        return self.now_s


class Machines:
    """Of a runtime what these faults use: a process that may die, a disk and a clock for each broker."""

    brokers = BROKERS

    def __init__(self) -> None:
        self.time = Time()
        self.alive = set(BROKERS)
        self.incarnations = dict.fromkeys(BROKERS, 1)
        self.disks = {node: SimulatedDisk() for node in BROKERS}
        self.clocks = {node: SimulatedWallClock(self.time, 0) for node in BROKERS}
        self.exits_at_start: set[str] = set()

    def is_alive(self, node: str) -> bool:
        return node in self.alive

    async def kill(self, node: str) -> dict[str, Any]:
        self.alive.remove(node)
        return {"pid": self.incarnations[node], "dead": True}

    async def restart(self, node: str) -> dict[str, Any]:
        assert node not in self.alive
        if node in self.exits_at_start:
            raise NodeExited(f"{node} exited with code 1")
        self.alive.add(node)
        self.incarnations[node] += 1
        return {"pid": self.incarnations[node], "answered": True}

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        """A broker that stops in order syncs its file, if it has the time."""
        if grace_s:
            self.disks[node].fsync("f")
        return await self.kill(node) | {"ended_by": "SIGTERM"}

    async def power_cut(self, node: str) -> dict[str, Any]:
        return await self.kill(node) | await self.cut_stopped(node)

    async def cut_stopped(self, node: str) -> dict[str, Any]:
        assert node not in self.alive
        return asdict(self.disks[node].power_cut(Random(1)))

    async def fill_disk(self, node: str) -> dict[str, Any]:
        self.disks[node].fill()
        return self.disks[node].probe()

    async def fail_disk(self, node: str) -> dict[str, Any]:
        self.disks[node].fail()
        return self.disks[node].probe()

    async def fail_log_dir(self, node: str, number: int) -> dict[str, Any]:
        failing = LOG_DIRS[number % len(LOG_DIRS)]
        self.disks[node].fail(below=failing)
        return self.disks[node].probe(failing)

    async def unsynced_bytes(self, node: str) -> int:
        return self.disks[node].unsynced_log_bytes()

    async def corrupt_tail(self, node: str) -> dict[str, Any]:
        return damage.damage_report(self.disks[node].corrupt_tail(Random(1)))

    async def heal_disk(self, node: str) -> dict[str, Any]:
        refused = self.disks[node].heal()
        return self.disks[node].probe() | {"refused": dict(refused)}

    async def skew_clock(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        self.clocks[node].skew(offset_ms)
        self.clocks[node].drift(drift)
        return {"offset_ms": self.clocks[node].offset_ms, "drift": self.clocks[node].rate}


class View:
    """A cluster of one partition with the given ISR and replicas."""

    def __init__(self, isr: Iterable[int], replicas: Iterable[int]) -> None:
        self._isr = tuple(isr)
        self._replicas = tuple(replicas)

    async def snapshot(self) -> ClusterSnapshot:
        state = PartitionState(
            leader=self._isr[0], leader_epoch=0, isr=self._isr, replicas=self._replicas
        )
        return ClusterSnapshot(partitions={("t", 0): state})


def context_of(
    machines: Any, isr: Iterable[int] = (1, 2, 3), replicas: Iterable[int] = (1, 2, 3)
) -> FaultContext:
    disks = SimpleNamespace(
        fill=machines.fill_disk,
        fail=machines.fail_disk,
        heal=machines.heal_disk,
        power=SimpleNamespace(cut=machines.power_cut, cut_stopped=machines.cut_stopped),
        log_dirs=SimpleNamespace(fail=machines.fail_log_dir),
        log_tails=SimpleNamespace(
            unsynced_bytes=machines.unsynced_bytes, corrupt=machines.corrupt_tail
        ),
    )
    clocks = SimpleNamespace(
        skew=machines.skew_clock, correct=partial(machines.skew_clock, offset_ms=0, drift=0.0)
    )
    runtime = runtime_of(machines, processes=machines, disks=disks, clocks=clocks)
    return FaultContext.of(runtime, cast("Any", View(isr, replicas)))


async def struck(fault: Fault, context: FaultContext) -> Strike:
    strike = await fault.aim(context, Random(1))
    assert (await strike.apply()).is_effective
    assert not (await strike.verify()).is_effective
    return strike


async def healed(strike: Strike) -> dict[str, Any]:
    await strike.undo()
    verified = await strike.verify()
    assert verified.is_effective
    return verified.detail


def test_a_power_cut_ends_the_process_and_loses_what_was_not_synced() -> None:
    async def scene() -> None:
        machines = Machines()
        disk = machines.disks["broker-2"]
        disk.append("f", b"synced")
        disk.fsync("f")
        for _ in range(200):
            disk.append("f", b"unsynced")
        context = context_of(machines)
        strike = await PowerCut(selector="broker-2").aim(context, Random(1))
        applied = await strike.apply()
        assert applied.is_effective
        assert not machines.is_alive("broker-2")
        assert "broker-2" in context.stopped
        lost = applied.detail["broker-2"]["lost_bytes"]
        assert 0 < lost <= 1600
        assert disk.contents()["/f"].startswith(b"synced")
        assert len(disk.contents()["/f"].rstrip(b"\0")) == 6 + 1600 - lost
        await healed(strike)
        assert machines.incarnations["broker-2"] == 2
        assert not context.stopped

    asyncio.run(scene())


def test_a_broker_that_is_stopped_first_has_synced_what_it_loses_power_with() -> None:
    async def scene() -> None:
        machines = Machines()
        disk = machines.disks["broker-2"]
        disk.append("f", b"unsynced" * 200)
        strike = await PowerCut(selector="broker-2", stops_first=True).aim(
            context_of(machines), Random(1)
        )
        applied = await strike.apply()
        assert applied.is_effective
        detail = applied.detail["broker-2"]
        assert (detail["ended_by"], detail["lost_bytes"]) == ("SIGTERM", 0)
        assert disk.contents()["/f"] == b"unsynced" * 200
        await healed(strike)
        assert machines.incarnations["broker-2"] == 2

    asyncio.run(scene())


def test_some_drawn_power_cuts_stop_the_broker_first() -> None:
    drawn = [PowerCut.draw(Random(seed), DrawRange(5, 7)) for seed in range(40)]
    assert {cut.stops_first for cut in drawn} == {False, True}


@pytest.mark.parametrize(
    ("isr", "dead", "touched", "is_spared"),
    [
        ((1, 2, 3), (), (), False),
        ((2, 3), (), (), False),
        ((1, 3), (), (), False),  # not a member itself: nobody counts on what it has
        ((2,), (), (), True),
        ((2, 3), ("broker-3",), (), True),
        ((1, 2, 3), ("broker-3",), ("broker-1",), True),
        ((1, 2, 3), (), ("broker-1",), False),
    ],
)
def test_a_broker_that_alone_has_what_was_acknowledged_keeps_its_power(
    isr: tuple[int, ...], dead: tuple[str, ...], touched: tuple[str, ...], is_spared: bool
) -> None:
    async def scene() -> None:
        machines = Machines()
        machines.alive -= set(dead)
        context = context_of(machines, isr)
        context.touched.update(touched)
        if is_spared:
            with pytest.raises(SelectorUnresolved, match="t-0 has no other unharmed replica"):
                await PowerCut(selector="broker-2").aim(context, Random(1))
        else:
            await struck(PowerCut(selector="broker-2"), context)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("isr", "dead", "paused", "is_last"),
    [
        ((2,), (), (), True),
        ((2, 3), ("broker-3",), (), True),
        ((2, 3), (), ("broker-3",), True),
        ((2, 3), (), (), False),  # broker 3 is cut off, and has what was acknowledged
        ((1, 3), (), (), False),
    ],
)
def test_the_intent_lists_partitions_of_which_no_other_member_of_the_isr_runs(
    isr: tuple[int, ...], dead: tuple[str, ...], paused: tuple[str, ...], is_last: bool
) -> None:
    async def scene() -> None:
        machines = Machines()
        machines.alive -= set(dead)
        context = context_of(machines, isr)
        context.stopped.update(paused)
        context.touched.update(("broker-1", "broker-3"))
        strike = await PowerCut(selector="broker-2", spares_last=False).aim(context, Random(1))
        assert strike.intent.get("last_in_isr", []) == (["t-0"] if is_last else [])

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("fault", "refused"),
    [(DiskFull(selector="broker-1"), "ENOSPC"), (DiskFailure(selector="broker-1"), "EIO")],
)
def test_a_broken_disk_refuses_calls_and_its_broker_is_bounced_once_it_works(
    fault: DiskFull, refused: str
) -> None:
    async def scene() -> None:
        machines = Machines()
        context = context_of(machines)
        strike = await struck(fault, context)
        with pytest.raises(OSError, match="f"):
            machines.disks["broker-1"].append("f", b"data")
        machines.disks["broker-2"].append("f", b"data")
        assert machines.incarnations["broker-1"] == 1
        detail = await healed(strike)
        assert detail["disk"]["broker-1"]["refused"] == {refused: 1}
        machines.disks["broker-1"].append("f", b"data")
        assert machines.incarnations == {"broker-1": 2, "broker-2": 1, "broker-3": 1}
        assert not context.stopped

    asyncio.run(scene())


def test_one_of_two_log_directories_fails_and_the_other_works() -> None:
    async def scene() -> None:
        machines = Machines()
        disk = machines.disks["broker-1"]
        for log_dir in LOG_DIRS:
            disk.make_directory(log_dir)
        strike = await struck(LogDirFailure(selector="broker-1"), context_of(machines))
        refused = []
        for log_dir in LOG_DIRS:
            try:
                disk.append(f"{log_dir}/f", b"data")
            except OSError:
                refused.append(log_dir)
        assert len(refused) == 1
        await healed(strike)
        disk.append(f"{refused[0]}/f", b"data")
        assert machines.incarnations["broker-1"] == 2

    asyncio.run(scene())


def test_the_end_of_a_log_is_damaged_only_where_there_is_something_unsynced() -> None:
    async def scene() -> None:
        machines = Machines()
        disk = machines.disks["broker-2"]
        disk.make_directory("t-0")
        segment = f"t-0/{0:020d}.log"
        for _ in range(3):
            disk.append(segment, batch())
        strike = await struck(CorruptTail(selector="broker-2"), context_of(machines))
        assert disk.contents()[f"/{segment}"] != batch() * 3
        await healed(strike)
        assert machines.incarnations["broker-2"] == 2
        disk.fsync(segment)
        strike = await CorruptTail(selector="broker-2").aim(context_of(machines), Random(1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(corrupt_tail, "PATIENCE_S", 0.0)
            assert not (await strike.apply()).is_effective

    asyncio.run(scene())


def test_a_broker_that_was_drained_of_replicas_has_no_log_to_damage() -> None:
    """Seed 160098 of transactions struck one just after ``remove-broker``, and was unknown."""

    async def scene() -> None:
        machines = Machines()
        context = context_of(machines, isr=(1, 3), replicas=(1, 3))
        with pytest.raises(SelectorUnresolved, match="broker-2 has no replica"):
            await CorruptTail(selector="broker-2").aim(context, Random(1))
        for fault in (CorruptTail(selector="broker-1"), PowerCut(selector="broker-2")):
            strike = await fault.aim(context, Random(1))
            assert strike.victims == [fault.selector]

    asyncio.run(scene())


def test_a_broker_that_could_not_bear_its_disk_is_started() -> None:
    async def scene() -> None:
        machines = Machines()
        strike = await struck(DiskFailure(selector="broker-1"), context_of(machines))
        await machines.kill("broker-1")
        await healed(strike)
        assert machines.is_alive("broker-1")

    asyncio.run(scene())


@pytest.mark.parametrize("lost", BROKERS)
def test_every_disk_is_mended_even_if_a_broker_does_not_come_back(lost: str) -> None:
    async def scene() -> None:
        machines = Machines()
        strike = await struck(DiskFull(selector="all"), context_of(machines))
        machines.exits_at_start.add(lost)
        with pytest.raises(NodeExited, match=f"{lost} exited"):
            await strike.undo()
        assert machines.alive == NODES - {lost}
        assert all(set(disk.probe().values()) == {None} for disk in machines.disks.values())
        assert not (await strike.verify()).is_effective

    asyncio.run(scene())


@pytest.mark.parametrize(("offset_ms", "drift"), [(-3_600_000, 0.0), (0, 0.5), (250, -0.5)])
def test_a_skewed_clock_is_off_and_then_right_again(offset_ms: int, drift: float) -> None:
    async def scene() -> None:
        machines = Machines()
        clock = machines.clocks["broker-3"]
        fault = ClockSkew(selector="broker-3", offset_ms=offset_ms, drift=drift)
        strike = await struck(fault, context_of(machines))
        machines.time.now_s += 2.0
        assert clock.offset_ms == offset_ms + 2000 * drift
        await healed(strike)
        machines.time.now_s += 2.0
        assert clock.offset_ms == 0

    asyncio.run(scene())


class Unmoved(Machines):
    """Machines on which nothing takes effect."""

    async def power_cut(self, node: str) -> dict[str, Any]:
        return {"dead": False}

    async def fill_disk(self, node: str) -> dict[str, Any]:
        return self.disks[node].probe()

    fail_disk = fill_disk

    async def fail_log_dir(self, node: str, number: int) -> dict[str, Any]:
        return await self.fill_disk(node)

    async def skew_clock(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        return {"offset_ms": 0, "drift": 0.0}


@pytest.mark.parametrize(
    "fault",
    [
        PowerCut(),
        DiskFull(),
        DiskFailure(),
        LogDirFailure(),
        ClockSkew(offset_ms=20),
        ClockSkew(drift=0.1),
    ],
)
def test_what_had_no_effect_says_so(fault: Fault) -> None:
    async def scene() -> None:
        strike = await fault.aim(context_of(Unmoved()), Random(1))
        assert not (await strike.apply()).is_effective

    asyncio.run(scene())


@pytest.mark.parametrize(
    "kind", [PowerCut, CorruptTail, DiskFull, DiskFailure, LogDirFailure, ClockSkew]
)
def test_what_is_drawn_makes_sense_in_a_cluster(kind: type[Fault]) -> None:
    drawn = [kind.draw(Random(seed), DrawRange(5.0, 7.0)) for seed in range(200)]
    for fault in drawn:
        fault.check(NODES)
        assert 5.0 <= fault.duration_s <= 7.0
    assert len({getattr(fault, "selector", "") for fault in drawn}) >= 3


def test_a_clock_that_would_stay_right_is_refused() -> None:
    with pytest.raises(UsageError, match="offset_ms 0 and drift 0"):
        ClockSkew(selector="one").check(NODES)

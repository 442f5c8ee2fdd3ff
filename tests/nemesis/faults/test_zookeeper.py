"""Members of the ensemble die, sleep and are cut off: elections, sessions that move, and always a quorum in the end."""

from __future__ import annotations

import asyncio
from random import Random
from typing import cast

import pytest

from nemesis.faults import members
from nemesis.faults.base import DrawRange, Fault, FaultContext, SelectorUnresolved
from nemesis.faults.clock import ClockSkewZookeeper
from nemesis.faults.zookeeper import (
    KillZookeeper,
    PartitionZookeeper,
    PauseZookeeper,
    moved_sessions,
)
from nemesis.interfaces.ensemble import EnsembleMembers, ZooKeeperMember
from nemesis.interfaces.runtime import EVERYWHERE
from nemesis.runtimes.simulation import SimulationRuntime
from nemesis.support.errors import UsageError
from tests.nemesis.faults.simulated_cluster import healed, in_cluster, struck

ENSEMBLE = ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
NODES = frozenset([*ENSEMBLE, "broker-1", "broker-2", "broker-3"])
MEMBERS = {
    "zookeeper-1": ZooKeeperMember("follower", 2, (11,)),
    "zookeeper-2": ZooKeeperMember("leader", 1, (12,)),
    "zookeeper-3": ZooKeeperMember("leader", 2, (13, 14)),
}
SESSION_S = 2.0


def choose(text: str, *missing: str, seed: int = 0) -> list[str]:
    free = {node: member for node, member in MEMBERS.items() if node not in missing}
    return members.choose(text, free=free, ensemble=ENSEMBLE, rng=Random(seed))


def test_of_two_that_believe_to_lead_the_newer_one_is_the_leader() -> None:
    assert choose("leader") == ["zookeeper-3"]
    assert choose("follower") == ["zookeeper-1"]
    assert choose("zookeeper-2") == ["zookeeper-2"]


@pytest.mark.parametrize(("text", "count"), [("one", 1), ("minority", 1), ("majority", 2)])
def test_counts_are_of_the_whole_ensemble_and_drawn_from_the_seed(text: str, count: int) -> None:
    drawn = [choose(text, seed=seed) for seed in range(40)]
    assert all(len(nodes) == count for nodes in drawn)
    assert len(set(map(tuple, drawn))) == 3


@pytest.mark.parametrize("text", ["leader", "follower", "one", "minority", "zookeeper-3"])
def test_a_member_is_spared_while_another_one_is_struck(text: str) -> None:
    with pytest.raises(SelectorUnresolved, match="without a quorum"):
        choose(text, "zookeeper-2")


def test_a_majority_is_struck_only_when_all_are_well() -> None:
    with pytest.raises(SelectorUnresolved, match="not all of ZooKeeper is unharmed"):
        choose("majority", "zookeeper-1")


def test_a_standalone_server_is_never_struck() -> None:
    alone = {"zookeeper-1": ZooKeeperMember("standalone", 0, ())}
    for text in ("one", "minority", "zookeeper-1", "leader"):
        with pytest.raises(SelectorUnresolved):
            members.choose(text, free=alone, ensemble=["zookeeper-1"], rng=Random(0))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            KillZookeeper(selector="controller"),
            "unknown ZooKeeper selector 'controller': allowed are",
        ),
        (PauseZookeeper(selector="zookeeper-7"), "this cluster has zookeeper-1, zookeeper-2"),
        (KillZookeeper(selector="majority", duration_s=9.0), "for 4 s at most, not for 9 s"),
        (PartitionZookeeper(shape="from-all", selector="minority"), "strikes one member"),
        (
            ClockSkewZookeeper(selector="broker-1", drift=1.0),
            "unknown ZooKeeper selector 'broker-1'",
        ),
        (ClockSkewZookeeper(), "clock-skew-zookeeper with offset_ms 0 and drift 0"),
    ],
)
def test_what_cannot_be_is_one_sentence(fault: Fault, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fault.check(NODES)


@pytest.mark.parametrize(
    "kind", [KillZookeeper, PauseZookeeper, PartitionZookeeper, ClockSkewZookeeper]
)
def test_what_is_drawn_makes_sense_in_an_ensemble(kind: type[Fault]) -> None:
    drawn = [kind.draw(Random(seed), DrawRange(5.0, 7.0)) for seed in range(200)]
    for fault in drawn:
        fault.check(NODES)
    assert len({getattr(fault, "selector", "") for fault in drawn}) >= 3
    assert EnsembleMembers in kind.needs
    assert not kind.needs <= EVERYWHERE


def test_only_sessions_at_another_member_have_moved() -> None:
    now = {
        "zookeeper-1": ZooKeeperMember("follower", 2, (11, 14)),
        "zookeeper-3": ZooKeeperMember("leader", 2, (15,)),
    }
    assert moved_sessions(MEMBERS, now) == 1


async def leader_of(context: FaultContext) -> tuple[str, int]:
    """The present leader and its epoch; waits for one."""
    while True:
        result = await context.members()
        leaders = [
            (member.epoch, node) for node, member in result.items() if member.mode == "leader"
        ]
        if leaders:
            epoch, node = max(leaders)
            return node, epoch
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "fault",
    [
        KillZookeeper(),
        PauseZookeeper(),
        PartitionZookeeper(shape="from-members"),
        PartitionZookeeper(shape="from-all", direction="mute"),
    ],
)
def test_a_leader_that_is_struck_is_replaced_and_no_session_ends(fault: Fault) -> None:
    async def test(context: FaultContext) -> None:
        old, epoch = await leader_of(context)
        sessions = await context.zookeeper_view.sessions()
        strike = await struck(fault, context)
        assert strike.victims == [old]
        assert strike.intent["modes"] == {old: "leader"}
        await asyncio.sleep(6.0)
        assert await context.zookeeper_view.sessions() == sessions
        new, later = await leader_of(context)
        assert new != old
        assert later > epoch
        detail = await healed(strike, context)
        assert detail["modes"] == {old: "follower"}
        assert not context.stopped

    in_cluster(test)


def test_a_follower_cut_off_from_brokers_loses_its_sessions_to_others() -> None:
    async def test(context: FaultContext) -> None:
        before = await context.members()
        follower = next(
            node for node, m in before.items() if m.mode == "follower" and len(m.sessions)
        )
        strike = await struck(PartitionZookeeper(shape="from-brokers", selector=follower), context)
        await asyncio.sleep(5.0)
        detail = await healed(strike, context)
        assert detail["moved_sessions"] >= 1
        assert len(await context.zookeeper_view.sessions()) == 3

    in_cluster(test)


def test_from_one_broker_takes_one_that_is_connected() -> None:
    async def test(context: FaultContext) -> None:
        owners = {
            broker.session: f"broker-{number}"
            for number, broker in (await context.view.snapshot()).brokers.items()
        }
        for node, member in (await context.members()).items():
            connected = {owners[session] for session in member.sessions if session in owners}
            fault = PartitionZookeeper(shape="from-one-broker", selector=node)
            strike = await fault.aim(context, Random(3))
            (broker,) = strike.intent["grudge"][node]
            assert not connected or broker in connected

    in_cluster(test)


def test_without_a_majority_no_session_ends_and_afterwards_all_go_on() -> None:
    async def test(context: FaultContext) -> None:
        sessions = await context.zookeeper_view.sessions()
        strike = await struck(PauseZookeeper(selector="majority"), context)
        await asyncio.sleep(members.MAX_OUTAGE_S)
        assert len(await context.members()) <= 1
        await healed(strike, context)
        await asyncio.sleep(SESSION_S)
        assert await context.zookeeper_view.sessions() == sessions

    in_cluster(test)


def test_the_harness_reads_from_a_member_that_knows_the_present() -> None:
    """It leaves one that is paused, and one that lags."""

    async def test(context: FaultContext) -> None:
        for node in context.cluster.zookeepers:
            fault = PartitionZookeeper(shape="from-members", selector=node)
            strike = await struck(fault, context)
            snapshot = await context.view.snapshot()
            assert snapshot.controller is not None
            victim = f"broker-{snapshot.controller.broker_id}"
            session = snapshot.brokers[snapshot.controller.broker_id].session
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert await context.zookeeper.end_session(session), victim
            while session in await context.zookeeper_view.sessions():
                await asyncio.sleep(0.05)
            assert loop.time() - began < 5.0
            await healed(strike, context)
            await asyncio.sleep(3.0)

    in_cluster(test)


def test_a_leader_whose_clock_is_off_leads_on_and_stamps_with_it() -> None:
    async def test(context: FaultContext) -> None:
        leader, epoch = await leader_of(context)
        sessions = await context.zookeeper_view.sessions()
        strike = await struck(ClockSkewZookeeper(offset_ms=-3_600_000), context)
        assert strike.victims == [leader]
        await asyncio.sleep(6.0)
        assert await leader_of(context) == (leader, epoch)
        assert await context.zookeeper_view.sessions() == sessions
        await context.processes.kill("broker-1")
        while len(await context.zookeeper_view.sessions()) == len(sessions):
            await asyncio.sleep(0.5)
        await healed(strike, context)
        before, *_, last = cast(
            "SimulationRuntime", context.runtime
        ).machines.ensemble.transactions()
        assert last.wall_ms - before.wall_ms == pytest.approx(-3_600_000, abs=60_000)

    in_cluster(test)

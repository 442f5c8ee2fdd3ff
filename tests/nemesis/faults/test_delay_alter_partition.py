"""ISRs that are proposed with a member whose life is over."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.faults.delay_alter_partition import DelayAlterPartition, is_proposed_on_links
from nemesis.support.node_names import id_of
from tests.nemesis.faults.simulated_cluster import create_topic, healed, in_cluster, struck


def test_proposals_are_held_until_the_member_has_registered_anew_and_arrive_at_the_heal() -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        before = (await context.view.snapshot()).brokers
        strike = await struck(DelayAlterPartition(selector="bystander"), context)
        [member] = strike.victims
        await asyncio.sleep(1.0)
        snapshot = await context.view.snapshot()
        renewed = {b for b in before if snapshot.brokers[b].session != before[b].session}
        assert renewed == {id_of(member)}
        controller = snapshot.controller
        assert controller is not None
        led_elsewhere = [
            s for s in snapshot.partitions.values() if s.leader != controller.broker_id
        ]
        assert led_elsewhere
        assert all(id_of(member) not in state.isr for state in led_elsewhere)
        assert not (await strike.verify()).is_effective
        detail = await healed(strike, context)
        assert detail["alter_partition_bytes_since"] > 0

    in_cluster(test)


def test_a_member_that_does_not_come_back_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(context: FaultContext) -> None:
        async def not_ended(_: int) -> bool:
            return False

        await create_topic(context)
        monkeypatch.setattr(context.zookeeper, "end_session", not_ended)
        strike = await DelayAlterPartition(selector="bystander").aim(context, Random(1))
        measured = await strike.apply()
        assert not measured.is_effective
        assert measured.detail["registrations"] == 0
        await strike.undo()

    in_cluster(test)


def test_who_follows_nobody_but_the_controller_is_no_target() -> None:
    async def test(context: FaultContext) -> None:
        with pytest.raises(SelectorUnresolved, match="no leader would propose broker-2 to another"):
            await DelayAlterPartition(selector="broker-2").aim(context, Random(1))

    in_cluster(test)


@pytest.mark.parametrize(
    ("leader", "controller", "is_proposed"),
    [(1, 3, True), (3, 3, False), (2, 3, False), (-1, 3, False), (1, None, False)],
)
def test_proposals_that_cross_a_link(
    leader: int, controller: int | None, is_proposed: bool
) -> None:
    snapshot = ClusterSnapshot(
        controller=None if controller is None else Ephemeral(controller, session=1, czxid=1),
        brokers={},
        partitions={("t", 0): PartitionState(leader, leader_epoch=0, isr=(), replicas=(1, 2, 3))},
    )
    assert is_proposed_on_links("broker-2", snapshot) is is_proposed

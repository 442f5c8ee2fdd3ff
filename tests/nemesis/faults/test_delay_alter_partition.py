"""ISRs that are proposed with a member whose life is over."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.faults.base import Place
from nemesis.faults.delay_alter_partition import DelayAlterPartition
from nemesis.faults.targets import id_of
from tests.nemesis.faults.simulated_cluster import healed, in_cluster, struck
from workloads.kafka.admin import KafkaAdmin


async def create_topic(place: Place) -> None:
    """Three partitions, each led by another broker, or nearly so; returns when they are led."""
    runtime = place.runtime
    client = KafkaAdmin(
        [(address.host, address.port) for address in runtime.bootstrap()],
        client_id="test",
        source_host=runtime.client_host(runtime.clients[0]),
        rng=Random(1),
        codec=runtime.codec,
    )
    try:
        await client.refresh_metadata()
        await client.create_topic("t", partitions=3, replication_factor=3, timeout_s=5.0)
    finally:
        client.close()
    while len((await place.view.snapshot()).partitions) < 3:
        await asyncio.sleep(0.1)


def test_proposals_are_held_until_the_member_has_registered_anew_and_arrive_at_the_heal() -> None:
    async def test(place: Place) -> None:
        await create_topic(place)
        before = (await place.view.snapshot()).brokers
        strike = await struck(DelayAlterPartition(target="bystander"), place)
        [member] = strike.targets
        await asyncio.sleep(1.0)
        seen = await place.view.snapshot()
        renewed = {b for b in before if seen.brokers[b].session != before[b].session}
        assert renewed == {id_of(member)}
        controller = seen.controller
        assert controller is not None
        led_elsewhere = [s for s in seen.partitions.values() if s.leader != controller.broker_id]
        assert led_elsewhere
        assert all(id_of(member) not in state.isr for state in led_elsewhere)
        assert not (await strike.verify()).is_effective
        detail = await healed(strike, place)
        assert detail["alter_partition_bytes_since"] > 0

    in_cluster(test)


def test_a_member_that_does_not_come_back_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(place: Place) -> None:
        async def not_ended(_: int) -> bool:
            return False

        monkeypatch.setattr(place.view.zookeeper, "end_session", not_ended)
        strike = await DelayAlterPartition(target="broker-2").aim(place, Random(1))
        measured = await strike.apply()
        assert not measured.is_effective
        assert measured.detail["registrations"] == 0
        await strike.undo()

    in_cluster(test)

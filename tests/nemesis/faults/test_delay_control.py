"""A broker that hears of elections late."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.faults.base import DrawRange, FaultContext
from nemesis.faults.delay_control import DelayControl
from nemesis.support.node_names import id_of
from tests.nemesis.faults.simulated_cluster import healed, in_cluster, struck


def test_what_controllers_say_is_held_while_sessions_end_and_arrives_at_the_heal() -> None:
    async def test(context: FaultContext) -> None:
        before = (await context.view.snapshot()).brokers
        strike = await struck(DelayControl(selector="bystander", elections=3), context)
        [deaf] = strike.victims
        await asyncio.sleep(1.0)
        after = (await context.view.snapshot()).brokers
        assert set(after) == set(before)
        renewed = {broker for broker in before if after[broker].session != before[broker].session}
        assert renewed
        assert id_of(deaf) not in renewed
        assert not (await strike.verify()).is_effective
        detail = await healed(strike, context)
        assert detail["control_bytes_since"] > 0

    in_cluster(test)


def test_a_target_that_has_become_the_controller_meanwhile_hears_of_another() -> None:
    async def test(context: FaultContext) -> None:
        strike = await DelayControl(selector="bystander", elections=3).aim(context, Random(1))
        [deaf] = strike.victims
        while (controller := (await context.view.snapshot()).controller) is not None:
            if controller.broker_id == id_of(deaf):
                break
            await context.zookeeper.end_session(controller.session)
            await asyncio.sleep(1.0)
        applied = await strike.apply()
        assert applied.is_effective, applied.detail
        assert applied.detail["sessions_ended"][0] == deaf
        await healed(strike, context)

    in_cluster(test)


def test_without_anything_to_be_told_there_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(context: FaultContext) -> None:
        async def not_ended(_: int) -> bool:
            return False

        monkeypatch.setattr(context.zookeeper, "end_session", not_ended)
        strike = await DelayControl(selector="broker-2", elections=1).aim(context, Random(1))
        assert not (await strike.apply()).is_effective
        await strike.undo()

    in_cluster(test)


def test_it_is_drawn_with_several_elections() -> None:
    drawn = [DelayControl.draw(Random(seed), DrawRange(5, 7)) for seed in range(20)]
    assert {fault.elections for fault in drawn} == {2, 3, 4}
    assert all(5 <= fault.duration_s <= 7 for fault in drawn)

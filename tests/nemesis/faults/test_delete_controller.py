"""An operator deletes ``/controller`` while its owner lives."""

from __future__ import annotations

from random import Random

import pytest

from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.delete_controller import CONTROLLER_PATH, DeleteController
from nemesis.support.node_names import id_of
from tests.nemesis.faults.simulated_cluster import healed, in_cluster, struck


def test_another_term_begins_and_no_session_ends() -> None:
    async def test(context: FaultContext) -> None:
        before = await context.view.snapshot()
        strike = await struck(DeleteController(), context)
        assert before.controller is not None
        assert [id_of(node) for node in strike.victims] == [before.controller.broker_id]
        await healed(strike, context)
        after = await context.view.snapshot()
        assert after.controller_epoch > before.controller_epoch
        assert after.brokers == before.brokers

    in_cluster(test)


def test_without_a_controller_nothing_can_be_deleted() -> None:
    async def test(context: FaultContext) -> None:
        strike = await DeleteController().aim(context, Random(1))
        assert await context.zookeeper.delete(CONTROLLER_PATH)
        with pytest.raises(SelectorUnresolved):
            await DeleteController().aim(context, Random(1))
        assert not (await strike.apply()).is_effective

    in_cluster(test)

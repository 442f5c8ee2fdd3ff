"""A broker whose only disk fails halts, as Kafka's does; it comes back once the disk works."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.faults.base import FaultContext
from nemesis.faults.disk import DiskFailure, DiskFull
from tests.nemesis.faults.simulated_cluster import healed, in_cluster, struck


@pytest.mark.parametrize(
    "fault", [DiskFull(selector="controller"), DiskFailure(selector="controller")]
)
def test_the_broker_is_gone_until_its_disk_works(fault: DiskFull) -> None:
    async def scene(context: FaultContext) -> None:
        [node] = (await fault.aim(context, Random(1))).victims
        strike = await struck(fault, context)
        async with asyncio.timeout(10.0):  # the next checkpoint of high watermarks meets it
            while context.is_alive(node):
                await asyncio.sleep(0.1)
            while await controller(context) in (None, node):
                await asyncio.sleep(0.1)
        assert not (await strike.verify()).is_effective
        detail = await healed(strike, context)
        assert detail["disk"][node]["refused"]
        assert context.is_alive(node)

    in_cluster(scene)


async def controller(context: FaultContext) -> str | None:
    owner = await context.view.controller_now()
    return None if owner is None else f"broker-{owner.broker_id}"

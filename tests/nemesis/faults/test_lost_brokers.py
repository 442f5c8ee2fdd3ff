"""Kill and restart when a broker does not come back: the others are started, and the loss comes out as itself."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import pytest

from nemesis.faults.base import FaultContext
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.kill import Kill
from nemesis.faults.restart import Restart
from nemesis.interfaces.errors import NodeExited
from tests.nemesis.faults.partial_runtime import runtime_of


class EmptyView:
    async def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot()


class Processes:
    """Brokers of which ``lost`` exits whenever it is started again."""

    brokers = ("broker-1", "broker-2")

    def __init__(self, lost: str) -> None:
        self.lost = lost
        self.alive = set(self.brokers)
        self.pid = 0

    def is_alive(self, node: str) -> bool:
        return node in self.alive

    async def kill(self, node: str) -> dict[str, Any]:
        self.alive.remove(node)
        return {"pid": self.pid, "dead": True}

    async def restart(self, node: str) -> dict[str, Any]:
        if node == self.lost:
            raise NodeExited(f"{node} exited with code 1")
        self.alive.add(node)
        self.pid += 1
        return {"pid": self.pid, "answered": True}


@pytest.mark.parametrize("fault", [Kill(selector="all"), Restart(selector="all")])
@pytest.mark.parametrize("lost", ["broker-1", "broker-2"])
def test_the_others_are_started_and_the_loss_is_told(fault: Kill | Restart, lost: str) -> None:
    runtime = Processes(lost)
    context = FaultContext.of(runtime_of(runtime, processes=runtime), cast("Any", EmptyView()))

    async def scene() -> None:
        strike = await fault.aim(context, Random(1))
        await strike.apply()
        with pytest.raises(NodeExited, match=f"{lost} exited"):
            await strike.undo()

    asyncio.run(scene())
    assert runtime.alive == {"broker-1", "broker-2"} - {lost}
    assert not context.stopped

"""Moments that ZooKeeper announces, and what must still be true when they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from kazoo.client import KazooClient

from nemesis.faults import trigger
from nemesis.faults.base import Fault, FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral
from nemesis.faults.pause import Pause
from nemesis.faults.session import ExpireSession
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.runtimes.kazoo_admin import KazooAdmin
from tests.history.zookeeper_server import zookeeper_server
from tests.nemesis.faults.partial_runtime import runtime_of


class ChangingView:
    """ZooKeeper before and after a moment that comes at once."""

    def __init__(self, before: ClusterSnapshot, after: ClusterSnapshot) -> None:
        self._now, self._after = before, after

    async def snapshot(self) -> ClusterSnapshot:
        return self._now

    async def controller_now(self) -> Ephemeral | None:
        return self._now.controller

    async def broker_loss(self, *, timeout_s: float) -> bool:
        del timeout_s
        self._now = self._after
        return True

    async def next_controller(self, *, timeout_s: float) -> int | None:
        await self.broker_loss(timeout_s=timeout_s)
        return None if self._now.controller is None else self._now.controller.broker_id


class Living:
    """Of a runtime only who lives."""

    brokers = ("broker-1", "broker-2", "broker-3")

    def __init__(self, *dead: str) -> None:
        self._dead = dead

    def is_alive(self, node: str) -> bool:
        return node not in self._dead


def cluster(controller: int, *, session: int = 0) -> ClusterSnapshot:
    """Brokers 1 to 3 in the sessions 11 to 13; ``session`` is a new one of the controller."""
    brokers = {number: Ephemeral(number, 10 + number, number) for number in (1, 2, 3)}
    if session:
        brokers[controller] = Ephemeral(controller, session, 99)
    return ClusterSnapshot(controller=brokers[controller], brokers=brokers)


def aim(fault: Fault, before: ClusterSnapshot, after: ClusterSnapshot, *dead: str) -> list[str]:
    view = ChangingView(before, after)
    living = Living(*dead)
    context = FaultContext.of(runtime_of(living, processes=living), cast("Any", view))
    return asyncio.run(_aim(fault, context))


async def _aim(fault: Fault, context: FaultContext) -> list[str]:
    return (await fault.aim(context, Random(1))).victims


WAITING: list[Fault] = [
    ExpireSession(selector="controller", when="broker-loss"),
    Pause(selector="controller", when="broker-loss", duration_s=1.0),
]


@pytest.mark.parametrize("fault", WAITING)
def test_a_victim_that_is_the_same_after_the_moment_is_struck(fault: Fault) -> None:
    assert aim(fault, cluster(2), cluster(2)) == ["broker-2"]


@pytest.mark.parametrize("fault", WAITING)
@pytest.mark.parametrize(
    "after",
    [cluster(1), cluster(2, session=77), ClusterSnapshot()],
    ids=["role", "session", "none"],
)
def test_a_victim_that_has_changed_by_the_moment_is_not_struck(
    fault: Fault, after: ClusterSnapshot
) -> None:
    with pytest.raises(SelectorUnresolved, match="controller is no longer what it was"):
        aim(fault, cluster(2), after)


def test_a_bystander_that_became_controller_or_changed_its_session_is_not_struck() -> None:
    fault = ExpireSession(selector="bystander", when="broker-loss")
    (victim,) = aim(fault, cluster(2), cluster(2))
    number = int(victim.removeprefix("broker-"))
    with pytest.raises(SelectorUnresolved, match="bystander"):
        aim(fault, cluster(2), cluster(number))
    moved = cluster(2)
    moved.brokers[number] = Ephemeral(number, 77, 99)
    with pytest.raises(SelectorUnresolved, match="bystander is no longer what it was"):
        aim(fault, cluster(2), moved)


def test_a_new_controller_that_is_dead_is_not_paused() -> None:
    with pytest.raises(SelectorUnresolved, match="broker-3 was elected and died"):
        aim(Pause(when="new-controller"), cluster(2), cluster(3), "broker-3")


@asynccontextmanager
async def real_view(address: str) -> AsyncIterator[tuple[ZooKeeperView, KazooClient]]:
    client = KazooClient(hosts=address)
    await asyncio.to_thread(client.start)
    try:
        async with KazooAdmin(address) as zookeeper:
            yield ZooKeeperView(zookeeper), client
    finally:
        await asyncio.to_thread(client.stop)
        await asyncio.to_thread(client.close)


Act = Callable[[KazooClient], Awaitable[object]]


def is_loss_seen(address: str, act: Act, *, timeout_s: float) -> bool:
    """Two of three brokers are registered while ``broker_loss`` begins to wait; then ``act``."""

    async def scene() -> bool:
        async with real_view(address) as (view, client):
            for number in (1, 2):
                path = f"/brokers/ids/{number}"
                await asyncio.to_thread(client.create, path, b"", ephemeral=True, makepath=True)
            waiting = asyncio.create_task(view.broker_loss(timeout_s=timeout_s))
            acting = asyncio.create_task(_after_the_watch_is_set(view, client, act))
            observed = await waiting
            await acting
            return observed

    return asyncio.run(scene())


async def _after_the_watch_is_set(view: ZooKeeperView, client: KazooClient, act: Act) -> None:
    asked: Any = view.zookeeper  # the real one, whose client knows what it watches
    while not asked._client._child_watchers.get("/brokers/ids"):
        await asyncio.sleep(0.01)
    await act(client)


def test_a_broker_that_is_absent_already_or_comes_is_no_loss(tmp_path: Path) -> None:
    async def come(client: KazooClient) -> None:
        await asyncio.to_thread(client.create, "/brokers/ids/3", b"", ephemeral=True)

    async def come_and_vanish(client: KazooClient) -> None:
        await come(client)
        await asyncio.sleep(0.2)
        await asyncio.to_thread(client.delete, "/brokers/ids/3")

    async def vanish(client: KazooClient) -> None:
        await asyncio.to_thread(client.delete, "/brokers/ids/2")

    async def vanish_and_be_back(client: KazooClient) -> None:
        """Between the watch and the next look: the names are the same, the znode is not."""
        bounce = client.transaction()
        bounce.delete("/brokers/ids/2")
        bounce.create("/brokers/ids/2", b"", ephemeral=True)
        await asyncio.to_thread(bounce.commit)

    with zookeeper_server(tmp_path) as address:
        assert is_loss_seen(address, vanish_and_be_back, timeout_s=10.0)
        assert not is_loss_seen(address, come, timeout_s=0.7)
        assert is_loss_seen(address, come_and_vanish, timeout_s=10.0)
        assert is_loss_seen(address, vanish, timeout_s=10.0)


def test_the_moments_ask_for_what_their_names_say() -> None:
    context = FaultContext.of(
        runtime_of(Living()), cast("Any", ChangingView(cluster(1), cluster(2)))
    )
    assert asyncio.run(trigger.new_controller(context)) == "broker-2"

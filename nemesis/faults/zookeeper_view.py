"""The view of a cluster with ZooKeeper: what its znodes say of controller, brokers, sessions, partition states.

The harness connects past every link rule. A view is a snapshot of several reads, not an atomic one: good enough to
choose a victim and to wait for an effect.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.interfaces.zookeeper_admin import ZooKeeperAdmin
from nemesis.reference.ports import Watch

REGISTRATION_POLL_S: Final = 0.1


class ZooKeeperView:
    """Implements ``ClusterView`` through ``zookeeper``.

    All reads raise ``HarnessError`` when ZooKeeper does not answer.
    """

    def __init__(self, zookeeper: ZooKeeperAdmin) -> None:
        self.zookeeper = zookeeper

    async def snapshot(self) -> ClusterSnapshot:
        """Read everything."""
        partitions: dict[tuple[str, int], PartitionState] = {}
        unassigned: list[tuple[str, int]] = []
        for topic in await self.zookeeper.children("/brokers/topics"):
            assignment = await self._json(f"/brokers/topics/{topic}") or {}
            topic_id = topic_id_of(assignment)
            for name, replicas in assignment.get("partitions", {}).items():
                partition = int(name)
                state = await self._json(f"/brokers/topics/{topic}/partitions/{partition}/state")
                if state is None:
                    unassigned.append((topic, partition))
                    continue
                partitions[topic, partition] = PartitionState(
                    leader=state["leader"],
                    leader_epoch=state["leader_epoch"],
                    isr=tuple(state["isr"]),
                    replicas=tuple(replicas),
                    topic_id=topic_id,
                    is_moving=any(
                        (assignment.get(column) or {}).get(name)
                        for column in ("adding_replicas", "removing_replicas")
                    ),
                    removing=tuple((assignment.get("removing_replicas") or {}).get(name) or ()),
                )
        return ClusterSnapshot(
            controller=await self.controller_now(),
            controller_epoch=await self._epoch(),
            brokers=await self._brokers(),
            partitions=partitions,
            unassigned=tuple(sorted(unassigned)),
            deletions=tuple(await self.zookeeper.children("/admin/delete_topics")),
            is_reassignment_asked_for=await self.zookeeper.exists("/admin/reassign_partitions")
            is not None,
            is_election_asked_for=await self.zookeeper.exists("/admin/preferred_replica_election")
            is not None,
        )

    async def controller(self) -> tuple[Ephemeral | None, int]:
        """Return the owner of ``/controller`` and the controller epoch."""
        return await self.controller_now(), await self._epoch()

    async def controller_now(self) -> Ephemeral | None:
        """Return the owner of ``/controller`` in one read."""
        if (znode := await self.zookeeper.get("/controller")) is None:
            return None
        data, stat = znode
        return Ephemeral(json.loads(data)["brokerid"], stat.ephemeral_owner, stat.czxid)

    async def sessions(self) -> frozenset[int]:
        """Return the sessions that own ``/controller`` or a ``/brokers/ids/N``."""
        controller = await self.controller_now()
        owners = {broker.session for broker in (await self._brokers()).values()}
        return frozenset(owners if controller is None else owners | {controller.session})

    async def registration(
        self, broker: int, *, timeout_s: float, after: int = -1
    ) -> Ephemeral | None:
        """Wait until the broker is registered, with a czxid above ``after``; None if it was not in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            ephemeral = (await self._brokers()).get(broker)
            if ephemeral is not None and ephemeral.czxid > after:
                return ephemeral
            if loop.time() > deadline:
                return None
            await asyncio.sleep(REGISTRATION_POLL_S)

    async def broker_loss(self, *, timeout_s: float) -> bool:
        """Wait until a broker that is registered now, or comes meanwhile, vanishes; return whether one did in time.

        A broker that is absent already (it restarts) does not count as a loss; one that has vanished and is back under
        a new session by the time we look does.
        """
        registered = await self._brokers()

        async def is_one_missing(watch: Watch) -> bool:
            nonlocal registered
            before = registered
            present = await self.zookeeper.children("/brokers/ids", watch)
            if not {str(broker) for broker in before} <= set(present):
                return True
            registered = await self._brokers()
            return any(registered.get(broker) != owned for broker, owned in before.items())

        return await self._watch(is_one_missing, timeout_s)

    async def next_controller(self, *, timeout_s: float) -> int | None:
        """Wait for the next election; return the id of the broker that won it, None if there was none in time."""
        before = await self.controller_now()
        winner: list[int] = []

        async def is_another_elected(watch: Watch) -> bool:
            if await self.zookeeper.exists("/controller", watch) is None:
                return False
            now = await self.controller_now()
            if now is None or (before is not None and now.czxid == before.czxid):
                return False
            winner.append(now.broker_id)
            return True

        return winner[0] if await self._watch(is_another_elected, timeout_s) else None

    async def _watch(self, has_come: Callable[[Watch], Awaitable[bool]], timeout_s: float) -> bool:
        """Wait for something that a watch announces."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            changed = asyncio.Event()
            if await has_come(changed.set):
                return True
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                return False

    async def _epoch(self) -> int:
        znode = await self.zookeeper.get("/controller_epoch")
        return 0 if znode is None else int(znode[0])

    async def _brokers(self) -> dict[int, Ephemeral]:
        brokers: dict[int, Ephemeral] = {}
        for child in await self.zookeeper.children("/brokers/ids"):
            if (znode := await self.zookeeper.get(f"/brokers/ids/{child}")) is not None:
                stat = znode[1]
                brokers[int(child)] = Ephemeral(int(child), stat.ephemeral_owner, stat.czxid)
        return brokers

    async def _json(self, path: str) -> Any:
        znode = await self.zookeeper.get(path)
        return None if znode is None else json.loads(znode[0])


def topic_id_of(assignment: dict[str, Any]) -> UUID | None:
    """Return the id in a topic's znode, which has it in URL-safe base64; None for a missing or malformed one."""
    try:
        return UUID(bytes=urlsafe_b64decode(f"{assignment['topic_id']}=="))
    except (KeyError, ValueError):
        return None

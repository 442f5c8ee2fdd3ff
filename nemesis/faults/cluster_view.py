"""What ZooKeeper says about the cluster, for the harness: controller, brokers, sessions, partition
states.

The harness connects past every link rule. Reads are blocking kazoo calls in a worker thread, one
at a time. A view is a snapshot of several reads, not an atomic one: good enough to choose a target
and to wait for an effect.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from nemesis.errors import HarnessError

SESSION_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 5.0

Answer = TypeVar("Answer")
Watch = Callable[[object], None]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """An ephemeral znode of a broker: whose session owns it."""

    broker_id: int
    session: int
    czxid: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state znode of a partition and its assignment. ``leader`` −1 is none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """One look at ZooKeeper. ``partitions`` by (topic, partition); one without a state znode yet is left out."""

    controller: Ephemeral | None = None
    controller_epoch: int = 0
    brokers: dict[int, Ephemeral] = field(default_factory=dict)
    partitions: dict[tuple[str, int], PartitionState] = field(default_factory=dict)
    unassigned: tuple[tuple[str, int], ...] = ()
    """Partitions that are assigned but have no state znode yet."""


class ClusterView:
    """A ZooKeeper client of the harness; an asynchronous context manager."""

    def __init__(self, hosts: str) -> None:
        self.hosts = hosts
        self._client = KazooClient(
            hosts=hosts,
            timeout=SESSION_TIMEOUT_S,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_delay=0.2),
            command_retry=KazooRetry(max_tries=3, delay=0.05, backoff=1, max_delay=0.2),
        )
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._client.start, CALL_TIMEOUT_S)
        except KazooTimeoutError:
            await self._close()
            raise HarnessError(f"ZooKeeper at {self.hosts} does not answer the harness") from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def snapshot(self) -> ClusterSnapshot:
        """Read everything; raises ``HarnessError`` when ZooKeeper does not answer the harness."""
        return await self._call(self._read_snapshot)

    async def controller(self) -> tuple[Ephemeral | None, int]:
        """Return the owner of ``/controller`` and the controller epoch; raises ``HarnessError``."""
        return await self._call(lambda: (self._read_controller(), self._read_epoch()))

    async def sessions(self) -> frozenset[int]:
        """Return the sessions that own ``/controller`` or a ``/brokers/ids/N``; raises ``HarnessError``."""
        return await self._call(self._read_sessions)

    async def controller_now(self) -> Ephemeral | None:
        """Return the owner of ``/controller`` in one read that waits for no other; raises ``HarnessError``."""
        return await self._ask(self._read_controller)

    async def broker_loss(self, *, timeout_s: float) -> bool:
        """Wait until a broker that is registered now, or comes meanwhile, vanishes; return whether one did in time.

        A broker that is absent already (it restarts) is no loss.
        """
        present: set[str] | None = None

        def is_one_missing(watch: Watch) -> bool:
            nonlocal present
            before = present
            present = set(self._client.retry(self._client.get_children, "/brokers/ids", watch))
            return before is not None and not before <= present

        return await self._watch(is_one_missing, timeout_s)

    async def next_controller(self, *, timeout_s: float) -> int | None:
        """Wait for the next election; return the id of the broker that won it, None if there was none in time."""
        before, _ = await self.controller()
        winner: list[int] = []

        def is_another_elected(watch: Watch) -> bool:
            if self._client.retry(self._client.exists, "/controller", watch) is None:
                return False
            now = self._read_controller()
            if now is None or (before is not None and now.czxid == before.czxid):
                return False
            winner.append(now.broker_id)
            return True

        return winner[0] if await self._watch(is_another_elected, timeout_s) else None

    async def _watch(self, has_come: Callable[[Watch], bool], timeout_s: float) -> bool:
        """Wait for something that a watch announces. Reads do not queue behind others: the moment would pass."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            changed = asyncio.Event()

            def announce(_event: object, changed: asyncio.Event = changed) -> None:
                loop.call_soon_threadsafe(changed.set)

            try:
                if await asyncio.to_thread(has_come, announce):
                    return True
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                return False
            except (KazooException, KazooTimeoutError) as error:
                raise HarnessError(
                    f"ZooKeeper at {self.hosts} does not answer the harness: {error!r}"
                ) from error

    async def _call(self, read: Callable[[], Answer]) -> Answer:
        async with self._turn:
            return await self._ask(read)

    async def _ask(self, read: Callable[[], Answer]) -> Answer:
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S * 4):
                return await asyncio.to_thread(read)
        except (KazooException, KazooTimeoutError, TimeoutError) as error:
            raise HarnessError(
                f"ZooKeeper at {self.hosts} does not answer the harness: {error!r}"
            ) from error

    async def _close(self) -> None:
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)

    # -- blocking reads, in a worker thread ---------------------------------------------------------

    def _read_snapshot(self) -> ClusterSnapshot:
        partitions: dict[tuple[str, int], PartitionState] = {}
        unassigned: list[tuple[str, int]] = []
        for topic in self._children("/brokers/topics"):
            assignment = self._json(f"/brokers/topics/{topic}")
            for name, replicas in (assignment or {}).get("partitions", {}).items():
                partition = int(name)
                state = self._json(f"/brokers/topics/{topic}/partitions/{partition}/state")
                if state is None:
                    unassigned.append((topic, partition))
                    continue
                partitions[topic, partition] = PartitionState(
                    leader=state["leader"],
                    leader_epoch=state["leader_epoch"],
                    isr=tuple(state["isr"]),
                    replicas=tuple(replicas),
                )
        return ClusterSnapshot(
            controller=self._read_controller(),
            controller_epoch=self._read_epoch(),
            brokers=self._read_brokers(),
            partitions=partitions,
            unassigned=tuple(sorted(unassigned)),
        )

    def _read_controller(self) -> Ephemeral | None:
        if (found := self._get("/controller")) is None:
            return None
        data, stat = found
        return Ephemeral(json.loads(data)["brokerid"], stat.ephemeralOwner, stat.czxid)

    def _read_epoch(self) -> int:
        found = self._get("/controller_epoch")
        return 0 if found is None else int(found[0])

    def _read_brokers(self) -> dict[int, Ephemeral]:
        brokers: dict[int, Ephemeral] = {}
        for child in self._children("/brokers/ids"):
            if (found := self._get(f"/brokers/ids/{child}")) is not None:
                stat = found[1]
                brokers[int(child)] = Ephemeral(int(child), stat.ephemeralOwner, stat.czxid)
        return brokers

    def _read_sessions(self) -> frozenset[int]:
        controller = self._read_controller()
        owners = {broker.session for broker in self._read_brokers().values()}
        return frozenset(owners if controller is None else owners | {controller.session})

    def _children(self, path: str) -> list[str]:
        try:
            return sorted(self._client.retry(self._client.get_children, path))
        except NoNodeError:
            return []

    def _json(self, path: str) -> Any:
        found = self._get(path)
        return None if found is None else json.loads(found[0])

    def _get(self, path: str) -> tuple[bytes, Any] | None:
        try:
            data, stat = self._client.retry(self._client.get, path)
        except NoNodeError:
            return None
        return data, stat

"""reassignment: replicas are moved, moves taken back or replaced, preferred leaders elected, under load and faults.

Movers look at the metadata of some broker and ask the controller for one of three things: to move a partition to other
brokers, with all replicas or one less; to cancel a move that is in progress; to let the preferred replica lead. Often a
mover thinks better of it a moment after it has asked for a move, and cancels it or asks for another. Moves meet: of the
same partition, by several movers, while others are in progress. Internal topics are left alone; with
``internal_topics`` the partitions of ``__consumer_offsets`` are moved, too.

Operations (``nemesis.history.events``): ``describe`` tells a partition's replicas before anybody moves it;
``reassign`` with the target as ``replicas``, ``cancel-reassign``, ``elect-leaders``. What must be true at the end is
worked out by ``nemesis.checkers.reassignment``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from nemesis.history.recorder import Recorder
from nemesis.workloads.admin_requests import AdminRequests
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.internal_topics import OFFSETS_TOPIC, create_offsets_topic
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.operations import Pace
from nemesis.workloads.partitions import TopicPartition
from nemesis.workloads.processes import Program
from nemesis.workloads.produce_consume import ProduceConsume
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions

ELECT_SHARE, CANCEL_SHARE = 0.2, 0.15
"""Of the requests; the others move."""
CHANGE_OF_MIND = 0.4
"""How often a move is cancelled or replaced soon after it was asked for."""
SOONEST_S, LATEST_S = 0.005, 0.3


class ReassignmentOptions(
    ProduceConsumeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a scenario may set, beside the load's options."""

    later_topics: Annotated[int, Meta(ge=0, le=1000)] = 1
    """Further topics, of one partition each, that are created during the run."""
    movers: Annotated[int, Meta(ge=1, le=1000)] = 2
    """Clients that move partitions, cancel moves and elect preferred leaders."""
    move_interval_ms: Annotated[int, Meta(ge=1, le=600_000)] = 1_500
    """Each of the ``movers`` makes at most one request in this many milliseconds."""
    internal_topics: bool = False
    """``true``: the topic ``__consumer_offsets`` is created before the run, and its partitions are moved, too."""


class Reassignment(ProduceConsume):
    """The workload ``reassignment``; see the module."""

    name: ClassVar = "reassignment"
    options_type: ClassVar = ReassignmentOptions
    _options: ReassignmentOptions

    def __init__(self, context: WorkloadContext, options: Mapping[str, Any]) -> None:
        super().__init__(context, options)
        self._internal: list[TopicPartition] = []

    async def setup(self, timeout_s: float) -> None:
        """Create what is moved and wait for leaders; raises ``NotReadyError`` after ``timeout_s`` for each step."""
        await super().setup(timeout_s)
        if self._options.internal_topics:
            requests = self._admin_requests("admin-setup")
            try:
                self._internal = await create_offsets_topic(requests.client, timeout_s)
                requests.describe(OFFSETS_TOPIC)
            finally:
                requests.client.close()

    @property
    def _movable(self) -> list[TopicPartition]:
        return [*self._partitions.known, *self._internal]

    def _programs(self) -> Iterator[tuple[str, Program]]:
        yield from super()._programs()
        for index in range(self._options.movers):
            name = f"mover-{index}"
            yield name, partial(self._move, name)

    def _on_created(self, client: KafkaAdmin, recorder: Recorder, topic: str) -> None:
        # No mover has known the topic before: these replicas are the ones that it was created with.
        requests = AdminRequests(client, recorder, self._log, timeout_s=self._clients.timeout_s)
        requests.describe(topic)

    async def _move(self, process: str) -> None:
        requests = self._admin_requests(process)
        client = requests.client
        rng = self._clients.rng()
        pace = Pace(self._options.move_interval_ms, rng)
        step = 0
        try:
            while True:
                await pace.wait()
                step += 1
                choice, chance = rng.random(), Random(rng.getrandbits(64))
                if not self._context.permits(process, step):
                    continue
                if not await client.refresh_metadata():
                    continue
                if choice < ELECT_SHARE:
                    await requests.elect_preferred_leader(chance.choice(self._movable))
                elif choice < ELECT_SHARE + CANCEL_SHARE:
                    await self._cancel_any(requests, chance)
                else:
                    await self._move_any(requests, chance)
        finally:
            client.close()

    async def _move_any(self, requests: AdminRequests, chance: Random) -> None:
        tp = chance.choice(self._movable)
        await requests.reassign(tp, self._target(requests.client, chance))
        if chance.random() >= CHANGE_OF_MIND:
            return
        await asyncio.sleep(chance.uniform(SOONEST_S, LATEST_S))
        if chance.random() < 1 / 2:
            await requests.cancel_reassignment(tp)
        else:
            await requests.reassign(tp, self._target(requests.client, chance))

    def _target(self, client: KafkaAdmin, chance: Random) -> list[int]:
        brokers = sorted(client.metadata.brokers)
        factor = self._options.replication_factor
        size = max(1, factor - (chance.random() < 1 / 3))
        return chance.sample(brokers, k=min(size, len(brokers)))

    async def _cancel_any(self, requests: AdminRequests, chance: Random) -> None:
        try:
            in_progress = await requests.client.reassignments(timeout_s=self._clients.timeout_s)
        except KafkaError:
            return
        if in_progress:
            await requests.cancel_reassignment(chance.choice(in_progress))

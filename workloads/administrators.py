"""Administrators that act on topics while others write and read them.

Each administrator looks at the metadata of some broker, which may be stale, and asks for one thing at a time:

* a few names, ``short-0`` and so on, are topics that come and go. A topic of these is deleted and created again at
  once, perhaps with another number of partitions, or gets a partition more. Producers and consumers go on meanwhile.
* of any topic a partition is moved to other brokers, a move is cancelled, the preferred replica is elected, records
  are deleted, a setting is changed.

Administrators share the names, so that their requests meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Final

from nemesis.workloads.admin_requests import AdminRequests
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.clients import Clients
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.operations import Pace
from nemesis.workloads.partitions import KnownPartitions, TopicPartition
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.topic_creation import TopicCreation

CREATE_TRIES: Final = 20
CREATE_PAUSE_S: Final = 0.1
"""A name that is still being deleted cannot be created yet: the administrator asks again after this time."""
MOST_PARTITIONS: Final = 3
"""No topic that comes and goes has more."""
GROW_SHARE: Final = 0.3
"""Of the requests about a topic that exists and may grow; the others delete it and create it again."""
SETTINGS: Final = {
    "segment.ms": (200, 2_000),
    "flush.messages": (1, 10),
    "index.interval.bytes": (0, 64),
    "max.message.bytes": (500, 400_000),
}
"""Settings with values to be set: some batches of the workload are larger than the smaller ``max.message.bytes``. The
others change how logs are written, and no promise to clients."""
SETTING_WEIGHTS: Final = (1, 1, 1, 3)
"""How often each is changed, beside the others."""
DEFAULT: Final = -1
"""The broker's setting counts again."""


class Administrators:
    """The administrator processes of a workload."""

    def __init__(
        self,
        context: WorkloadContext,
        options: ProduceConsumeOptions,
        *,
        clients: Clients,
        partitions: KnownPartitions,
        topic_creation: TopicCreation,
        admin_requests: Callable[[str], AdminRequests],
    ) -> None:
        self._context = context
        self._options = options
        self._clients = clients
        self._partitions = partitions
        self._topic_creation = topic_creation
        self._admin_requests = admin_requests
        self._acts: dict[Callable[[AdminRequests, Random], Awaitable[None]], int] = {
            self._act_on_topic: 40,
            self._elect: 15,
            self._move: 15,
            self._cancel_move: 5,
            self._delete_records: 15,
            self._change_setting: 10,
        }
        """What is asked for, and how often in a hundred times."""

    async def run(self, process: str) -> None:
        """Ask until cancelled; ``process`` is the administrator's name."""
        requests = self._admin_requests(process)
        rng = self._clients.rng()
        pace, step = Pace(self._options.administration_interval_ms, rng), 0
        try:
            while True:
                await pace.wait()
                step += 1
                # Drawn before the step may be left out, so that leaving it out changes no other.
                (act,) = rng.choices([*self._acts], [*self._acts.values()])
                chance = Random(rng.getrandbits(64))
                if (
                    self._context.permits(process, step)
                    and await requests.client.refresh_metadata()
                ):
                    await act(requests, chance)
        finally:
            requests.client.close()

    async def _act_on_topic(self, requests: AdminRequests, chance: Random) -> None:
        topic = f"short-{chance.randrange(self._options.short_topics)}"
        existing = requests.client.metadata.topics.get(topic)
        count = 0 if existing is None else len(existing.partitions)
        if existing is None:
            self._partitions.remove_topic(topic)
        else:
            self._partitions.add([(topic, partition) for partition in sorted(existing.partitions)])
        if 0 < count < MOST_PARTITIONS and chance.random() < GROW_SHARE:
            if await requests.create_partitions(topic, count + 1):
                self._partitions.add([(topic, count)])
            return
        if existing is None or await requests.delete_topic(topic):
            await self._create(requests, topic, chance.randint(1, MOST_PARTITIONS))

    async def _create(self, requests: AdminRequests, topic: str, count: int) -> None:
        """Create a topic as soon as its name is free. Clients use the old partitions until then."""
        for _ in range(CREATE_TRIES):
            if await self._topic_creation.create(requests.client, requests.recorder, topic, count):
                self._partitions.remove_topic(topic)
                self._partitions.add([(topic, partition) for partition in range(count)])
                return
            await asyncio.sleep(CREATE_PAUSE_S)
            await requests.client.refresh_metadata()
            if (created := requests.client.metadata.topics.get(topic)) is not None:
                # By this administrator, which got no answer, or by another one.
                self._partitions.remove_topic(topic)
                self._partitions.add(
                    [(topic, partition) for partition in sorted(created.partitions)]
                )
                return

    async def _elect(self, requests: AdminRequests, chance: Random) -> None:
        await requests.elect_preferred_leader(self._any(chance))

    async def _move(self, requests: AdminRequests, chance: Random) -> None:
        brokers = sorted(requests.client.metadata.brokers)
        size = min(self._options.replication_factor, len(brokers))
        await requests.reassign(self._any(chance), chance.sample(brokers, k=size))

    async def _cancel_move(self, requests: AdminRequests, chance: Random) -> None:
        try:
            moves = await requests.client.reassignments(timeout_s=self._clients.timeout_s)
        except KafkaError:
            return
        if moves:
            await requests.cancel_reassignment(chance.choice(moves))

    async def _delete_records(self, requests: AdminRequests, chance: Random) -> None:
        tp = self._any(chance)
        try:
            end = await requests.client.end_offset(*tp, timeout_s=self._clients.timeout_s)
        except KafkaError:
            return
        if end > 0:
            await requests.delete_records(tp, chance.randint(end // 4, end))

    async def _change_setting(self, requests: AdminRequests, chance: Random) -> None:
        topic, _ = self._any(chance)
        (setting,) = chance.choices([*SETTINGS], SETTING_WEIGHTS)
        await requests.set_topic_config(
            topic, setting, chance.choice((*SETTINGS[setting], DEFAULT))
        )

    def _any(self, chance: Random) -> TopicPartition:
        return chance.choice(self._partitions.known)

"""topics: a few names are created, grown, deleted and created again while faults strike and others use them.

Several administrators share the names, so that what they ask for meets. Each looks at the metadata of some broker,
which may be stale, and asks for what fits: a name that is absent is created, one that exists gets one partition more
or is deleted. Producers and consumers use the partitions that some administrator has seen last, beside those of the
topics that stay; they learn of a deletion by their errors. Internal topics are left alone; with ``internal_topics`` the
administrators share the name ``__consumer_offsets``, too.

Operations (``nemesis.history.events``): ``create-topic`` and ``create-partitions`` with the number of partitions as
``value``, ``delete-topic``. What must be true at the end is worked out by ``nemesis.checkers.deletion``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, ClassVar

from msgspec import Meta

from nemesis.workloads.admin_requests import AdminRequests
from nemesis.workloads.internal_topics import OFFSETS_TOPIC
from nemesis.workloads.operations import Pace
from nemesis.workloads.processes import Program
from nemesis.workloads.produce_consume import ProduceConsume
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions

GROW_SHARE = 0.4
"""Of the requests about a topic that exists and may grow; the others delete it."""


class TopicsOptions(ProduceConsumeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario may set, beside the load's options."""

    topics: Annotated[int, Meta(ge=1, le=1000)] = 1
    """Topics that are created before the run and not deleted."""
    later_topics: Annotated[int, Meta(ge=0, le=1000)] = 0
    """Further topics, of one partition each, that are created during the run and not deleted."""
    names: Annotated[int, Meta(ge=1, le=1000)] = 4
    """The number of topics that the administrators create, grow and delete again and again."""
    administrators: Annotated[int, Meta(ge=1, le=1000)] = 3
    """Clients that create, grow and delete topics; they share the same names."""
    request_interval_ms: Annotated[int, Meta(ge=1, le=600_000)] = 1_500
    """Each of the ``administrators`` makes at most one request in this many milliseconds."""
    most_partitions: Annotated[int, Meta(ge=1, le=1000)] = 4
    """The most partitions to which a topic grows."""
    internal_topics: bool = False
    """``true``: ``__consumer_offsets`` is created, grown and deleted, too. Groups lose their offsets then."""


class Topics(ProduceConsume):
    """The workload ``topics``; see the module."""

    name: ClassVar = "topics"
    options_type: ClassVar = TopicsOptions
    _options: TopicsOptions

    def _programs(self) -> Iterator[tuple[str, Program]]:
        yield from super()._programs()
        for index in range(self._options.administrators):
            name = f"topic-admin-{index}"
            yield name, partial(self._administer_names, name)

    @property
    def _changes_topics(self) -> bool:
        return True

    @property
    def _names(self) -> list[str]:
        """What the administrators create and delete."""
        names = [f"mortal-{index}" for index in range(self._options.names)]
        return [*names, OFFSETS_TOPIC] if self._options.internal_topics else names

    async def _administer_names(self, process: str) -> None:
        requests = self._admin_requests(process)
        rng = self._clients.rng()
        pace = Pace(self._options.request_interval_ms, rng)
        names = self._names
        step = 0
        try:
            while True:
                await pace.wait()
                step += 1
                # Drawn before the step may be left out, so that leaving it out changes no other.
                topic, choice = names[rng.randrange(len(names))], rng.random()
                if not self._context.permits(process, step):
                    continue
                if await requests.client.refresh_metadata():
                    await self._ask(requests, topic, choice)
        finally:
            requests.client.close()

    async def _ask(self, requests: AdminRequests, topic: str, choice: float) -> None:
        """``choice``, between 0 and 1, decides what is asked for."""
        client, recorder = requests.client, requests.recorder
        existing = client.metadata.topics.get(topic)
        if existing is None:
            self._partitions.remove_topic(topic)
            partitions = 1 + int(choice * 2)
            if await self._topic_creation.create(client, recorder, topic, partitions):
                self._partitions.add([(topic, partition) for partition in range(partitions)])
            return
        count = len(existing.partitions)
        self._partitions.add([(topic, partition) for partition in sorted(existing.partitions)])
        if choice < GROW_SHARE and count < self._options.most_partitions:
            if await requests.create_partitions(topic, count + 1):
                self._partitions.add([(topic, count)])
        elif await requests.delete_topic(topic):
            self._partitions.remove_topic(topic)

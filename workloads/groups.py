"""groups: consumers share the partitions of the topics in groups, while members come, go, crash and fall asleep.

An administrator adds partitions to the topics, which the leaders of the groups notice, and the groups rebalance.
Each member is a process that consumes for some seconds and then leaves its group, crashes, or pauses for longer than
its session lasts and comes back as a zombie; some are static members (``group_processes``). Producers, plain consumers
and everything else of ``produce-consume`` act beside the groups. ``group_members`` has what a member does.

At the end a last member joins each group, commits once and reads all committed offsets: the coordinator that
acknowledges a commit has all earlier commits.

Operations (``nemesis.history.vocabulary.groups``): ``join-group``, ``sync-group``, ``heartbeat``, ``leave-group``,
``commit-offset`` and ``fetch-offset``; events ``assigned`` and ``revoked``. Properties: ``nemesis.checkers.groups``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.group_members import GroupMember, MemberSettings
from nemesis.workloads.group_processes import GroupProcess, Incarnation, ProcessSettings
from nemesis.workloads.kafka.assignors import ASSIGNORS
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import ConsumerCoordinator
from nemesis.workloads.partitions import TopicPartition
from nemesis.workloads.processes import Program
from nemesis.workloads.produce_consume import ProduceConsume
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.topic_growth import grow_topics_again_and_again

_Milliseconds = Annotated[int, Meta(ge=1, le=600_000)]


class GroupsOptions(ProduceConsumeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario may set, beside the load's options."""

    groups: Annotated[int, Meta(ge=1, le=100)] = 2
    """Consumer groups."""
    members: Annotated[int, Meta(ge=1, le=100)] = 3
    """Member processes of each group."""
    static_members: Annotated[int, Meta(ge=0, le=100)] = 1
    """This many members of each group are static: they have an instance id (KIP-345)."""
    lone_groups: Annotated[int, Meta(ge=0, le=100)] = 0
    """Further groups with one dynamic member. Such a group is empty while its process is away."""
    assignors: Annotated[tuple[Literal["range", "cooperative-sticky"], ...], Meta(min_length=1)] = (
        "range",
        "cooperative-sticky",
    )
    """Assignors: the first group uses the first, the second group the second, and so on in turn."""
    session_timeout_ms: _Milliseconds = 3_000
    """The session time-out of members; at least the brokers' ``group.min.session.timeout.ms``."""
    rebalance_timeout_ms: _Milliseconds = 4_000
    """In a rebalance, the coordinator waits this long for the members to join again."""
    heartbeat_interval_ms: _Milliseconds = 500
    """Milliseconds between the heartbeats of a member."""
    commit_interval_ms: _Milliseconds = 500
    """Milliseconds between the offset commits of a member."""
    metadata_interval_ms: _Milliseconds = 2_000
    """Milliseconds between metadata requests of a member, so that a group's leader sees new partitions."""
    member_interval_ms: _Milliseconds = 100
    """Each member takes at most one step, such as a poll, in this many milliseconds."""
    consuming_ms: tuple[_Milliseconds, _Milliseconds] = (4_000, 14_000)
    """Shortest and longest time for which a member consumes before it leaves, crashes or pauses."""
    growth_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """Milliseconds between additions of a partition to a topic of the groups; 0: none."""
    most_partitions: Annotated[int, Meta(ge=1, le=1000)] = 5
    """The most partitions to which a topic grows."""


class Groups(ProduceConsume):
    """The workload ``groups``; see the module."""

    name: ClassVar = "groups"
    options_type: ClassVar = GroupsOptions
    _options: GroupsOptions

    def __init__(self, context: WorkloadContext, options: Mapping[str, Any]) -> None:
        super().__init__(context, options)
        self._settings = MemberSettings(
            timeout_s=self._clients.timeout_s,
            heartbeat_interval_s=self._options.heartbeat_interval_ms / 1000,
            commit_interval_s=self._options.commit_interval_ms / 1000,
            metadata_interval_s=self._options.metadata_interval_ms / 1000,
            operations=self._log,
            reads=self._reads,
            commit_numbers=count(),
            partitions=self._subscribed,
            leads=self._leads,
        )
        self._leaders: dict[str, tuple[int, str]] = {}
        """By group the newest generation that is known to have a leader, and the leader's process."""
        self._polls: defaultdict[str, count[int]] = defaultdict(lambda: count(1))
        """By process the numbers of the processes to which its polls belong."""
        least, most = self._options.consuming_ms
        self._process_settings = ProcessSettings(
            member_interval_ms=self._options.member_interval_ms,
            consuming_s=(least / 1000, most / 1000),
            session_s=self._options.session_timeout_ms / 1000,
            topics=tuple(self._topics),
            permits=self._context.permits,
        )

    def _programs(self) -> Iterator[tuple[str, Program]]:
        yield from super()._programs()
        options = self._options
        for index in range(options.groups * options.members):
            group, number = index % options.groups, index // options.groups
            is_static = number < options.static_members
            yield self._program(f"member-{index}", group, is_static=is_static)
        for group in range(options.groups, options.groups + options.lone_groups):
            yield self._program(f"member-lone-{group}", group, is_static=False)
        if self._options.growth_interval_ms:
            yield "topic-admin-0", partial(self._grow_topics, "topic-admin-0")

    async def final_reads(self, timeout_s: float) -> None:
        """Read all partitions, and at the same time the committed offsets of each group."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        await self._learn_partitions(deadline)
        reads = (self._read_offsets(index, deadline) for index in range(len(self._groups)))
        await asyncio.gather(self._final_reads.read_all(self._partitions.known, deadline), *reads)

    @property
    def _changes_topics(self) -> bool:
        return bool(self._options.growth_interval_ms) or super()._changes_topics

    # Administrators

    async def _grow_topics(self, process: str) -> None:
        await grow_topics_again_and_again(
            self._admin_requests(process),
            self._partitions,
            self._topics,
            most_partitions=self._options.most_partitions,
            interval_ms=self._options.growth_interval_ms,
            rng=self._clients.rng(),
            permits=lambda step: self._context.permits(process, step),
        )

    # Members

    @property
    def _groups(self) -> list[str]:
        """The names of all groups, those of the lone ones last."""
        return [
            f"group-{index}" for index in range(self._options.groups + self._options.lone_groups)
        ]

    def _leads(self, group: str, generation: int, process: str) -> None:
        """Note who leads a generation; a process that was paused may learn of an old one."""
        newest, _ = self._leaders.get(group, (generation, process))
        if generation >= newest:
            self._leaders[group] = generation, process

    def _leader(self, group: str) -> str | None:
        _, process = self._leaders.get(group, (0, None))
        return process

    def _program(self, name: str, group: int, *, is_static: bool) -> tuple[str, Program]:
        return name, partial(self._run_process, name, group, is_static=is_static)

    def _run_process(self, name: str, group: int, *, is_static: bool) -> Coroutine[Any, Any, None]:
        return self._process(name, group, is_static=is_static).run()

    def _process(self, name: str, group: int, *, is_static: bool) -> GroupProcess:
        rng, polls = self._clients.rng(), self._polls[name]
        instance = name if is_static else None

        def new_incarnation() -> Incarnation:
            client = self._clients.client(name)
            return Incarnation(client, self._member(name, group, client, polls, instance=instance))

        return GroupProcess(
            name,
            self._process_settings,
            is_static=is_static,
            new_incarnation=new_incarnation,
            rng=rng,
        )

    def _member(
        self,
        process: str,
        group: int,
        client: KafkaClient,
        polls: count[int],
        *,
        instance: str | None = None,
    ) -> GroupMember:
        name = f"group-{group}"
        coordinator = ConsumerCoordinator(
            client,
            name,
            self._topics,
            instance=instance,
            assignor=ASSIGNORS[self._options.assignors[group % len(self._options.assignors)]],
            session_timeout_ms=self._options.session_timeout_ms,
            rebalance_timeout_ms=self._options.rebalance_timeout_ms,
            codec=self._context.codec,
        )
        return GroupMember(
            name,
            client,
            coordinator,
            self._settings,
            process=process,
            recorder=self._context.recorder(process),
            poll_recorder=lambda: self._context.recorder(f"{process}.{next(polls)}"),
            rng=self._clients.rng(),
        )

    @property
    def _topics(self) -> list[str]:
        """The topics to which all groups subscribe; the later ones do not exist at first."""
        initial = [f"orders-{index}" for index in range(self._options.topics)]
        return [*initial, *(f"later-{index}" for index in range(self._options.later_topics))]

    def _subscribed(self) -> list[TopicPartition]:
        topics = set(self._topics)
        return [tp for tp in self._partitions.known if tp[0] in topics]

    # The end

    async def _read_offsets(self, group: int, deadline: float) -> None:
        """Join a group, commit once, and read what is committed; give up at the deadline."""
        process = f"final-group-{group}"
        client = self._clients.client(process)
        member = self._member(process, group, client, count(1))
        try:
            async with asyncio.timeout_at(deadline):
                await self._commit_once(member)
                await self._read_all(member)
                await member.leave()
        except TimeoutError:
            pass  # what was not read is not judged
        finally:
            client.close()

    async def _commit_once(self, member: GroupMember) -> None:
        """Commit the offset that the group has, so that the coordinator's log has all earlier commits."""
        tp = self._subscribed()[0]
        while True:
            await self._assigned(member)
            known = (await member.read_back([tp])).get(tp)
            if known is not None and await member.commit(tp, max(0, known.offset)):
                return

    async def _read_all(self, member: GroupMember) -> None:
        """Read what is committed for all partitions, in one request, and again for those that have failed."""
        unread = self._subscribed()
        while unread:
            known = await member.read_back(unread)
            unread = [tp for tp in unread if tp not in known]
            if unread:
                await self._assigned(member)

    async def _assigned(self, member: GroupMember) -> None:
        """Take steps until the member has its assignment, at least one."""
        await member.step()
        while not member.coordinator.is_assigned or member.coordinator.node is None:
            await asyncio.sleep(self._options.member_interval_ms / 1000)
            await member.step()

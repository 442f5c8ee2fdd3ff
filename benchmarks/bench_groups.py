"""Groups of consumers on the reference and on Apache Kafka: rebalances, many groups, and what a new coordinator loads.

Three brokers each, one cluster after the other; the offsets topic has one partition, so that one broker coordinates
everything. Clients and replicas reach brokers past the proxy.

``rebalance``   50 members of one group, on our own client in one process: one leaves and joins again. Seconds from the
                last JoinGroup that is sent to the last answer to a SyncGroup; required: under 2 s
``memory``      10,000 groups with a member and ten committed offsets each: the resident set size of their coordinator,
                and how much of it they have added; required: under 200 MB
``loading``     a million records of committed offsets, ten for each group and partition: another broker is elected,
                seconds until it answers an OffsetFetch; required: under 20 s

A number after the name divides the sizes: ``python -m benchmarks groups 100`` shows that the benchmark works.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from statistics import median
from typing import Final, NamedTuple, cast

from kio.schema.errors import ErrorCode
from kio.schema.offset_commit.v8 import request as offset_commit
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64
from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, TOPIC, Cluster, cluster
from benchmarks.figures import Figure
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.consumer_coordinator import ConsumerCoordinator
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.group_offset_requests import Committed, commit_errors

NAME: Final = "groups"
TARGETS: Final = ("reference", "kafka")
OFFSETS: Final = "__consumer_offsets"
PROPERTIES: Final = {
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
}
TIMEOUT_S: Final = 60.0
SESSION_MS: Final = 1_800_000
"""As long as brokers allow it: members of many groups send no heartbeats."""

MEMBERS: Final = 50
REBALANCES: Final = 5
HEARTBEAT_S: Final = 0.1
PARTITIONS: Final = 50
ALLOWED_REBALANCE_S: Final = 2.0

GROUPS: Final = 10_000
OFFSETS_PER_GROUP: Final = 10
ALLOWED_BYTES: Final = 200_000_000

LOADED_GROUPS: Final = 2_000
COMMITS_PER_PARTITION: Final = 10
ALLOWED_LOADING_S: Final = 20.0
POLL_S: Final = 0.01

CONNECTIONS: Final = 16


class Measured(NamedTuple):
    """Of one target."""

    rebalances_s: list[float]
    empty_bytes: int
    """The coordinator's resident set size before there are groups."""
    full_bytes: int
    creation_s: float
    records: int
    loadings_s: list[float]


def main(divisor: int = 1) -> list[Figure]:
    """Measure both targets, print a table, return the figures of the reference."""
    measured = [asyncio.run(_measure(target, divisor)) for target in TARGETS]
    Console(width=140).print(_table(measured, divisor))
    return _figures(measured[0], divisor)


async def _measure(target: str, divisor: int) -> Measured:
    async with _running(target) as running:
        rebalances_s = await _rebalances(running, max(2, MEMBERS // divisor))
    async with _running(target) as running:
        empty, full, creation_s = await _many_groups(running, GROUPS // divisor)
    async with _running(target) as running:
        records = await _fill(running, LOADED_GROUPS // divisor)
        loadings_s = await _loadings(running)
    return Measured(rebalances_s, empty, full, creation_s, records, loadings_s)


@asynccontextmanager
async def _running(target: str) -> AsyncIterator[Cluster]:
    async with cluster(
        target=target,
        tracing=False,
        through_links=False,
        partitions=PARTITIONS,
        properties=PROPERTIES,
    ) as running:
        yield running


# Rebalances


class _Member:
    """A member that joins whenever it has to, until it is stopped."""

    def __init__(self, running: Cluster, number: int) -> None:
        self._client = running.client(f"member-{number}")
        self.coordinator = _coordinator(self._client, "rebalanced")
        self.joined_at = self.assigned_at = 0.0
        """When the last JoinGroup was sent, and when the last SyncGroup was answered."""
        self.must_leave = False
        """The next step is to leave the group; the step after it joins again."""

    async def run(self) -> None:
        await _known(self._client)
        while True:
            with suppress(KafkaError):
                await self._step()
            await asyncio.sleep(HEARTBEAT_S if self.coordinator.is_assigned else 0)

    async def _step(self) -> None:
        coordinator = self.coordinator
        if coordinator.node is None:
            await asyncio.sleep(POLL_S)
            await coordinator.find(TIMEOUT_S)
        elif self.must_leave:
            self.must_leave = False
            await coordinator.leave(TIMEOUT_S)
        elif coordinator.is_assigned:
            await coordinator.heartbeat(TIMEOUT_S)
        else:
            joined_at = time.perf_counter()
            await coordinator.join(TIMEOUT_S)
            await coordinator.sync(TIMEOUT_S)
            self.joined_at, self.assigned_at = joined_at, time.perf_counter()

    def close(self) -> None:
        self._client.close()


async def _rebalances(running: Cluster, count: int) -> list[float]:
    """Return how long each rebalance took after its last JoinGroup."""
    members = [_Member(running, number) for number in range(count)]
    tasks = [asyncio.create_task(member.run()) for member in members]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _until_assigned(members, 0)
            return [await _rebalance(members) for _ in range(REBALANCES)]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for member in members:
            member.close()


async def _rebalance(members: list[_Member]) -> float:
    """Let a member leave, which then joins again as another one, and the group be complete again."""
    generation = members[0].coordinator.generation
    members[0].must_leave = True
    await _until_assigned(members, generation)
    return max(member.assigned_at for member in members) - max(
        member.joined_at for member in members
    )


async def _until_assigned(members: list[_Member], after: int) -> None:
    """Return once all members are assigned in a generation after that one, and heartbeats have not changed it."""
    while not _are_assigned(members, after):
        await asyncio.sleep(POLL_S)
    await asyncio.sleep(3 * HEARTBEAT_S)
    if not _are_assigned(members, after):
        await _until_assigned(members, after)


def _are_assigned(members: list[_Member], after: int) -> bool:
    generations = {member.coordinator.generation for member in members}
    is_next = len(generations) == 1 and generations.pop() > after
    return is_next and all(member.coordinator.is_assigned for member in members)


# Many groups


async def _many_groups(running: Cluster, count: int) -> tuple[int, int, float]:
    """Return what the coordinator has in memory before and after, and how long the groups took to make."""
    node = await _coordinating(running)
    before = running.broker_memory_bytes()[node - 1]
    started = time.perf_counter()

    async def make(client: KafkaAdmin, number: int) -> None:
        member = _coordinator(client, f"group-{number}")
        member.node = node
        while not member.is_assigned:
            with suppress(KafkaError):
                await member.join(TIMEOUT_S)
                await member.sync(TIMEOUT_S)
        await _commit(
            client,
            node,
            _commits(f"group-{number}", range(OFFSETS_PER_GROUP), number, member),
        )

    await _shared_out(running, range(count), make)
    took_s = time.perf_counter() - started
    return before, running.broker_memory_bytes()[node - 1], took_s


# Loading


async def _fill(running: Cluster, groups: int) -> int:
    """Commit offsets of clients without membership; return how many."""
    node = await _coordinating(running)

    async def commit(client: KafkaAdmin, number: int) -> None:
        group = f"group-{number % groups}"
        await _commit(client, node, _commits(group, range(PARTITIONS), number))

    await _shared_out(running, range(groups * COMMITS_PER_PARTITION), commit)
    return groups * COMMITS_PER_PARTITION * PARTITIONS


async def _loadings(running: Cluster) -> list[float]:
    """Elect each of the other brokers in turn, and the first one again; return how long each took to answer."""
    client = running.client("admin")
    try:
        await _known(client)
        first = client.metadata.leader(OFFSETS, 0) or 1
        others = [node for node in client.metadata.brokers if node != first]
        return [await _loading(client, node) for node in (*others, first)]
    finally:
        client.close()


async def _loading(client: KafkaAdmin, node: int) -> float:
    rest = tuple(other for other in client.metadata.brokers if other != node)
    await client.reassign(OFFSETS, 0, (node, *rest), timeout_s=TIMEOUT_S)
    while await client.reassignments(timeout_s=TIMEOUT_S):
        await asyncio.sleep(POLL_S)
    group = _coordinator(client, "group-0")
    started = time.perf_counter()
    await client.elect_preferred_leader(OFFSETS, 0, timeout_s=TIMEOUT_S)
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            group.node = node
            with suppress(KafkaError):
                committed = await _committed(group)
                if committed.offset < 0:
                    raise RuntimeError("the coordinator has lost the offsets")
                return time.perf_counter() - started
            await asyncio.sleep(POLL_S)


# What all of them do


def _coordinator(client: KafkaAdmin, group: str) -> ConsumerCoordinator:
    return ConsumerCoordinator(
        client, group, [TOPIC], session_timeout_ms=SESSION_MS, rebalance_timeout_ms=60_000
    )


async def _known(client: KafkaAdmin) -> None:
    while not await client.refresh_metadata() or len(client.metadata.brokers) < BROKERS:
        await asyncio.sleep(POLL_S)


async def _coordinating(running: Cluster) -> int:
    """Return the broker that coordinates all groups, once it answers."""
    client = running.client("finder")
    try:
        await _known(client)
        group = _coordinator(client, "finder")
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                with suppress(KafkaError):
                    await group.find(TIMEOUT_S)
                    node = group.node
                    await _committed(group)
                    return node or 0
                await asyncio.sleep(POLL_S)
    finally:
        client.close()


async def _shared_out(
    running: Cluster, numbers: Iterable[int], action: Callable[[KafkaAdmin, int], Awaitable[None]]
) -> None:
    """Do something for each number, on ``CONNECTIONS`` connections at the same time."""
    left: Iterator[int] = iter(numbers)

    async def work(name: str) -> None:
        client = running.client(name)
        try:
            await _known(client)
            for number in left:
                await action(client, number)
        finally:
            client.close()

    await asyncio.gather(*(work(f"client-{index}") for index in range(CONNECTIONS)))


async def _committed(group: ConsumerCoordinator) -> Committed:
    """Return what is committed for the first partition. Raises KafkaError."""
    outcome = (await group.fetch([(TOPIC, 0)], TIMEOUT_S))[TOPIC, 0]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def _commits(
    group: str, partitions: Iterable[int], offset: int, member: ConsumerCoordinator | None = None
) -> offset_commit.OffsetCommitRequest:
    """Commit an offset of each partition, as a member or as a client without membership."""
    return offset_commit.OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=cast("i32", -1 if member is None else member.generation),
        member_id="" if member is None else member.member_id,
        topics=(
            offset_commit.OffsetCommitRequestTopic(
                name=cast("TopicName", TOPIC),
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=cast("i32", number),
                        committed_offset=cast("i64", offset),
                        committed_leader_epoch=cast("i32", 0),
                        committed_metadata="",
                    )
                    for number in partitions
                ),
            ),
        ),
    )


async def _commit(
    client: KafkaAdmin, node: int, commits: offset_commit.OffsetCommitRequest
) -> None:
    """Raises RuntimeError unless it is acknowledged."""
    response = await client.request(node, commits, TIMEOUT_S)
    for error in commit_errors(response).values():
        if error is not ErrorCode.none:
            raise RuntimeError(f"a commit was not acknowledged: {error.name}")


# Results


def _table(measured: list[Measured], divisor: int) -> Table:
    table = Table("what", *TARGETS, "required", title="three brokers, one coordinator")

    def row(label: str, show: Callable[[Measured], str], required: str = "") -> None:
        table.add_row(label, *map(show, measured), required)

    members, groups = max(2, MEMBERS // divisor), GROUPS // divisor
    row(
        f"rebalance of {members} members, after the last JoinGroup, median and longest",
        lambda m: f"{median(m.rebalances_s):.2f} s, {max(m.rebalances_s):.2f} s",
        f"{ALLOWED_REBALANCE_S:.0f} s",
    )
    row("memory of the coordinator, without groups", lambda m: f"{m.empty_bytes / 1e6:.0f} MB")
    row(
        f"the same with {groups:,} groups",
        lambda m: f"{m.full_bytes / 1e6:.0f} MB",
        f"{ALLOWED_BYTES / 1e6:.0f} MB",
    )
    row("groups made", lambda m: f"{groups / m.creation_s:,.0f}/s")
    row(
        f"{measured[0].records:,} offset records loaded, median and longest",
        lambda m: f"{median(m.loadings_s):.2f} s, {max(m.loadings_s):.2f} s",
        f"{ALLOWED_LOADING_S:.0f} s",
    )
    return table


def _figures(reference: Measured, divisor: int) -> list[Figure]:
    return [
        Figure(
            benchmark=NAME,
            what="rebalance after the last JoinGroup",
            size=max(2, MEMBERS // divisor),
            unit="members",
            seconds=max(reference.rebalances_s),
            required_s=ALLOWED_REBALANCE_S,
        ),
        Figure(
            benchmark=NAME,
            what="memory of a coordinator",
            size=GROUPS // divisor,
            unit="groups",
            seconds=reference.creation_s,
            peak_bytes=reference.full_bytes,
            allowed_bytes=ALLOWED_BYTES,
        ),
        Figure(
            benchmark=NAME,
            what="groups loaded by a new coordinator",
            size=reference.records,
            unit="records",
            seconds=max(reference.loadings_s),
            required_s=ALLOWED_LOADING_S,
        ),
    ]


if __name__ == "__main__":
    main()

"""Groups whose coordinator dies, on virtual time: members stay, and what was committed is read back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.model import GROUP_METADATA_TOPIC_NAME
from nemesis.workloads.kafka.errors import KafkaError
from tests.nemesis.simulation.administered_cluster import Cluster, simulate
from tests.reference.coordinator.group_requests import GroupClient

PROPERTIES = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 5,
    "offsets.commit.timeout.ms": 2000,
}
GROUP = "a-group"
INSTANCE = "i-1"


def group_client(cluster: Cluster, group: str = GROUP) -> GroupClient:
    async def ask(address: tuple[str, int] | None, request: Any) -> Any:
        try:
            if address is None:
                return await cluster.client.ask_any(request, 2.0)
            return await cluster.client.ask(address, request, 12.0)
        except KafkaError:
            return None

    return GroupClient(group, ask)


async def kill_coordinator(cluster: Cluster, client: GroupClient) -> str:
    victim = f"broker-{client.coordinator_id}"
    await cluster.runtime.processes.kill(victim)
    return victim


def test_the_offsets_topic_is_created_for_the_first_group() -> None:
    async def test(cluster: Cluster) -> None:
        await group_client(cluster).find()
        await cluster.client.refresh_metadata()
        topic = cluster.client.metadata.topics[GROUP_METADATA_TOPIC_NAME]
        assert len(topic.partitions) == 5
        assert {len(partition.replicas) for partition in topic.partitions.values()} == {3}

    simulate(test, properties=PROPERTIES)


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_member_and_its_offsets_outlive_the_coordinator(seed: int) -> None:
    async def test(cluster: Cluster) -> None:
        client = group_client(cluster)
        joined = await client.join(instance=INSTANCE)
        synced = await client.sync(joined, INSTANCE)
        assert synced.assignment == joined.member_id.encode()
        assert await client.commit("t", 7, joined) is ErrorCode.none
        former = client.coordinator_id
        victim = await kill_coordinator(cluster, client)
        assert await client.committed("t") == 7
        assert client.coordinator_id != former
        assert await client.heartbeat(joined, INSTANCE) is ErrorCode.none
        assert (await client.sync(joined, INSTANCE)).assignment == synced.assignment
        back = await client.join(instance=INSTANCE)
        assert (back.error_code, back.generation_id) == (ErrorCode.none, joined.generation_id)
        assert back.member_id != joined.member_id
        await cluster.runtime.processes.restart(victim)
        await cluster.until(cluster.is_settled)
        await kill_coordinator(cluster, client)
        assert await client.heartbeat(back, INSTANCE) is ErrorCode.none
        assert await client.heartbeat(joined, INSTANCE) is ErrorCode.fenced_instance_id

    simulate(test, seed=seed, properties=PROPERTIES)


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_commit_is_lost_or_taken_back(seed: int) -> None:
    """A client commits one offset after the other while its coordinators die; each answer is a promise."""

    async def test(cluster: Cluster) -> None:
        client = group_client(cluster)
        await client.find()

        async def strike() -> None:
            for _ in range(3):
                await asyncio.sleep(1.0)
                victim = await kill_coordinator(cluster, client)
                await asyncio.sleep(3.0)
                await cluster.runtime.processes.restart(victim)
                await cluster.until(cluster.is_settled)

        strikes = asyncio.create_task(strike())
        offset = 0
        while not strikes.done():
            offset += 1
            assert await client.commit("t", offset) is ErrorCode.none
            assert await client.committed("t") == offset
            await asyncio.sleep(0.02)
        await strikes
        assert offset > 20

    simulate(test, seed=seed, properties=PROPERTIES)


def test_members_that_wait_for_a_dead_coordinator_join_at_the_next_one() -> None:
    async def test(cluster: Cluster) -> None:
        first, second = group_client(cluster), group_client(cluster)
        joined = await first.join()
        await first.sync(joined)
        waiting = asyncio.create_task(second.join())
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await kill_coordinator(cluster, first)
        again = await first.join(joined.member_id)
        # The member that waited had an id that was not stored: it joins as a new one.
        other = await waiting
        if other.error_code is ErrorCode.unknown_member_id:
            rejoining = asyncio.create_task(second.join())
            await asyncio.sleep(0.5)
            again = await first.join(joined.member_id)
            other = await rejoining
        assert again.generation_id == other.generation_id
        assert {again.leader, other.leader} == {again.member_id} or (
            {again.leader, other.leader} == {other.member_id}
        )

    simulate(test, properties=PROPERTIES)


def test_a_group_of_a_paused_coordinator_is_not_served_twice() -> None:
    """A coordinator that comes back from a pause learns that it is deposed before it takes a commit."""

    async def test(cluster: Cluster) -> None:
        client = group_client(cluster)
        assert await client.commit("t", 1) is ErrorCode.none
        paused = f"broker-{client.coordinator_id}"
        await cluster.runtime.processes.pause(paused)
        await asyncio.sleep(4.0)  # longer than its session
        assert await client.commit("t", 2) is ErrorCode.none
        await cluster.runtime.processes.resume(paused)
        late = group_client(cluster)
        assert await late.commit("t", 3) is ErrorCode.none
        assert await client.committed("t") == 3

    simulate(test, properties=PROPERTIES)

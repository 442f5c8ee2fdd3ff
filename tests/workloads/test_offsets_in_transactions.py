"""Offsets in transactions against a simulated cluster: who may commit them, and who may read them (KIP-447)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from kio.schema.errors import ErrorCode

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.consumer_coordinator import NO_MEMBER, ConsumerCoordinator
from nemesis.workloads.kafka.errors import BrokerError, KafkaError
from nemesis.workloads.kafka.group_offset_requests import NO_OFFSET, Committed
from nemesis.workloads.member_requests import MemberRequests
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.transformer_members import TransformerMember
from tests.workloads.transaction_bench import REQUEST_S, TOPIC, Bench, on_bench, write

GROUP = "transformers"
TP = (TOPIC, 0)
COMMITTED, NOTHING = Committed(1, -1, "7"), Committed(NO_OFFSET, -1, "")


async def member(bench: Bench, instance: str | None = None) -> ConsumerCoordinator:
    """Return a member that has its assignment; the members of before do not join again."""
    client = bench.client()
    await client.refresh_metadata()
    coordinator = ConsumerCoordinator(
        client,
        GROUP,
        [TOPIC],
        instance=instance,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=4_000,
    )
    async with asyncio.timeout(30):
        while not coordinator.is_assigned:
            await asyncio.sleep(0.1)
            with suppress(
                KafkaError
            ):  # the group's first coordinator is still elected, or gives the member its id
                await coordinator.find(REQUEST_S)
                await coordinator.join(REQUEST_S)
                await coordinator.sync(REQUEST_S)
    return coordinator


async def stable(owner: ConsumerCoordinator) -> dict[tuple[str, int], Committed | KafkaError]:
    return await owner.fetch([TP], REQUEST_S, is_stable=True)


async def refuse(bench: Bench, former: ConsumerCoordinator, error: ErrorCode) -> None:
    """A commit of the member is refused in a transaction, and nothing is committed."""
    producer = await bench.producer()
    await write(producer, "a")
    with pytest.raises(BrokerError) as refused:
        await producer.commit_offsets(former.membership, {TP: COMMITTED})
    assert (refused.value.code, refused.value.definite) == (error, True)
    assert not producer.is_fenced
    await producer.end(is_commit=False)
    assert (await stable(await member(bench)))[TP] == NOTHING


def test_a_member_commits_in_a_transaction_and_its_offset_is_unstable_until_the_end() -> None:
    async def test(bench: Bench) -> None:
        owner, producer = await member(bench), await bench.producer()
        await write(producer, "a")
        await producer.commit_offsets(owner.membership, {TP: COMMITTED})
        pending = (await stable(owner))[TP]
        assert isinstance(pending, BrokerError)
        assert (pending.code, pending.definite) == (ErrorCode.unstable_offset_commit, True)
        assert owner.is_assigned
        assert (await owner.fetch([TP], REQUEST_S))[TP] == NOTHING
        await producer.end(is_commit=True)
        async with asyncio.timeout(5):
            while (await stable(owner))[TP] != COMMITTED:
                await asyncio.sleep(0.1)

    on_bench(test)


def test_a_member_of_a_generation_that_has_ended_is_refused() -> None:
    async def test(bench: Bench) -> None:
        former = await member(bench)
        await member(bench)
        await refuse(bench, former, ErrorCode.unknown_member_id)

    on_bench(test)


def test_a_generation_that_is_not_the_groups_is_refused() -> None:
    async def test(bench: Bench) -> None:
        former = await member(bench)
        former.generation -= 1
        await refuse(bench, former, ErrorCode.illegal_generation)

    on_bench(test)


def test_a_static_member_whose_instance_another_process_has_taken_is_refused() -> None:
    async def test(bench: Bench) -> None:
        former = await member(bench, "one")
        latter = await member(bench, "one")
        assert latter.member_id != former.member_id
        await refuse(bench, former, ErrorCode.fenced_instance_id)

    on_bench(test)


def transformer(bench: Bench, coordinator: ConsumerCoordinator) -> TransformerMember:
    client = bench.client()
    recorder = Recorder(lambda _: None, process="transformer-0", clock=lambda: 0)
    requests = MemberRequests(
        client,
        coordinator,
        operations=OperationLog(),
        recorder=recorder,
        timeout_s=REQUEST_S,
        leads=lambda _: None,
    )
    return TransformerMember(coordinator, requests, timeout_s=REQUEST_S, heartbeat_interval_s=0.5)


def test_a_committed_position_counts_only_for_who_is_still_a_member() -> None:
    async def test(bench: Bench) -> None:
        former = transformer(bench, await member(bench))
        assert await former.position(TP) == 0
        latter = transformer(bench, await member(bench))
        assert await former.position(TP) is None
        assert await latter.position(TP) == 0

    on_bench(test)


def test_no_older_position_is_taken_than_the_member_has_committed_itself() -> None:
    async def test(bench: Bench) -> None:
        owner, producer = transformer(bench, await member(bench)), await bench.producer()
        await write(producer, "a")
        await producer.commit_offsets(owner.coordinator.membership, {TP: COMMITTED})
        assert await owner.position(TP) is None, "it is pending"
        await producer.end(is_commit=False)
        owner.committed(TP, 5)
        async with asyncio.timeout(5):
            while (position := await owner.position(TP)) is None:
                await asyncio.sleep(0.1)
        assert position == 5

    on_bench(test)


@pytest.mark.parametrize(
    ("error", "keeps_id", "is_fenced"),
    [
        (ErrorCode.illegal_generation, True, False),
        (ErrorCode.unknown_member_id, False, False),
        (ErrorCode.fenced_instance_id, False, True),
    ],
)
def test_a_member_learns_from_the_answer_to_its_producer(
    error: ErrorCode, *, keeps_id: bool, is_fenced: bool
) -> None:
    async def test(bench: Bench) -> None:
        owner = await member(bench)
        owner.note(error)
        assert not owner.is_assigned
        assert (owner.member_id != NO_MEMBER, owner.is_fenced) == (keeps_id, is_fenced)

    on_bench(test)

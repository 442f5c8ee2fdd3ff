"""The transaction coordinator: producers, their transactions, markers, time-outs and changes of role."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import TransactionalProducer
from tests.reference.coordinator.transaction_node import (
    ID,
    NUMBER,
    PARTITIONS,
    TIMEOUT_MS,
    A,
    B,
    TransactionNode,
    on_transaction_node,
)

NONE = ErrorCode.none
CONCURRENT = ErrorCode.concurrent_transactions


def test_a_transaction_is_committed(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead(4)
        producer = await node.begun()
        assert (producer.producer_id, producer.epoch, node.state) == (100, 0, "Empty")
        assert await node.end(producer) is ErrorCode.invalid_txn_state
        assert await node.add(producer) is NONE
        assert await node.add(producer, A) is NONE
        assert node.state == "Ongoing"
        assert await node.end(producer) is NONE
        assert node.state == "PrepareCommit"
        for answer in (node.add(producer), node.end(producer)):
            assert await answer is CONCURRENT
        marker = node.leaders.answer()
        assert (marker.producer_id, marker.producer_epoch) == (100, 0)
        assert (marker.coordinator_epoch, marker.is_commit) == (4, True)
        assert node.state == "CompleteCommit"
        assert await node.end(producer) is NONE, "sent again"
        assert await node.end(producer, is_commit=False) is ErrorCode.invalid_txn_state
        assert node.stored()[ID].state.value == "CompleteCommit"

    on_transaction_node(tmp_path, scenario)


def test_an_end_is_acknowledged_again_only_while_the_broker_coordinates(tmp_path: Path) -> None:
    """A former coordinator would acknowledge the next transaction of the epoch, which its successor has."""

    async def scenario(node: TransactionNode) -> None:
        await node.lead(isr=(1,))
        producer = await node.begun()
        await node.add(producer)
        assert await node.end(producer) is NONE
        node.leaders.answer()
        assert await node.end(producer) is NONE
        node.give_role(1, 1, isr=(1, 2))
        while node.transactions.is_loading:
            await asyncio.sleep(0.01)
        assert node.state == "CompleteCommit"
        assert await node.end(producer) is ErrorCode.coordinator_not_available
        again = asyncio.ensure_future(node.end(producer))
        await asyncio.sleep(0.01)
        node.give_role(2, 2)
        assert await again is ErrorCode.not_coordinator

    on_transaction_node(tmp_path, scenario)


def test_a_new_producer_fences_the_former_one_and_aborts_its_transaction(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        former = await node.begun()
        await node.add(former)
        assert (await node.init()).error is CONCURRENT
        assert node.state == "PrepareAbort"
        assert (await node.init()).error is CONCURRENT
        marker = node.leaders.answer()
        assert (marker.producer_epoch, marker.is_commit) == (1, False)
        latter = await node.begun()
        assert (latter.producer_id, latter.epoch) == (former.producer_id, 2)
        for answer in (node.add(former), node.end(former)):
            assert await answer is ErrorCode.producer_fenced
        assert await node.add(replace(latter, producer_id=9)) is (
            ErrorCode.invalid_producer_id_mapping
        )

    on_transaction_node(tmp_path, scenario)


def test_a_producer_that_asks_again_has_one_epoch(tmp_path: Path) -> None:
    """KIP-360."""

    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        assert (await node.begun()).epoch == 0
        for _ in range(2):
            assert (await node.begun(expected=(100, 0))).epoch == 1
        assert (await node.init((100, 7))).error is ErrorCode.producer_fenced
        assert (await node.init((99, 1))).error is ErrorCode.producer_fenced
        assert (await node.begun()).epoch == 2
        assert (await node.init((100, 1))).error is ErrorCode.producer_fenced

    on_transaction_node(tmp_path, scenario)


def test_a_producer_without_epochs_gets_a_new_id(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        await node.begun()
        owned = node.transactions.get(ID)
        assert isinstance(owned, tuple)
        owned.metadata.producer_epoch = (1 << 15) - 2
        renewed = await node.begun(expected=(100, (1 << 15) - 2))
        assert (renewed.producer_id, renewed.epoch) == (101, 0)
        again = await node.begun(expected=(100, (1 << 15) - 2))
        assert (again.producer_id, again.epoch) == (101, 0), "the answer was lost"

    on_transaction_node(tmp_path, scenario)


def test_what_is_refused(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        assert (await node.init()).error is ErrorCode.not_coordinator
        node.give_role(1, 0)
        assert (await node.init()).error is ErrorCode.coordinator_load_in_progress
        await node.lead(1)
        for timeout_ms in (0, 900_001):
            refused = await node.init(timeout_ms=timeout_ms)
            assert refused.error is ErrorCode.invalid_transaction_timeout
        assert (await node.init(transactional_id="")).error is ErrorCode.invalid_request
        unknown = TransactionalProducer(ID, 5, 0)
        for answer in (node.add(unknown), node.end(unknown)):
            assert await answer is ErrorCode.invalid_producer_id_mapping
        missing = node.coordinator.describe_transaction(ID).error
        assert missing is ErrorCode.transactional_id_not_found

    on_transaction_node(tmp_path, scenario)


def test_two_first_requests_get_two_epochs(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        node.ids_may_come.clear()
        both = [asyncio.ensure_future(node.init()) for _ in range(2)]
        await asyncio.sleep(0.1)
        node.ids_may_come.set()
        results = await asyncio.gather(*both)
        assert {(result.producer_id, result.producer_epoch) for result in results} == {
            (100, 0),
            (100, 1),
        }

    on_transaction_node(tmp_path, scenario)


def test_an_id_is_not_given_by_a_broker_that_has_resigned_meanwhile(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        node.ids_may_come.clear()
        answer = asyncio.ensure_future(node.init())
        await asyncio.sleep(0.1)
        node.give_role(2, 1)
        node.ids_may_come.set()
        assert (await answer).error is ErrorCode.not_coordinator

    on_transaction_node(tmp_path, scenario)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.not_leader_or_follower, ErrorCode.network_exception, ErrorCode.unknown_server_error],
)
def test_markers_are_sent_again(tmp_path: Path, error: ErrorCode) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer)
        await node.end(producer, is_commit=False)
        node.leaders.answer(b=error)
        assert node.coordinator.describe_transaction(ID).partitions == {B}
        await asyncio.sleep(1)
        ((_, partitions, _),) = node.leaders.waiting
        assert partitions == (B,)
        node.leaders.answer()
        assert node.state == "CompleteAbort"

    on_transaction_node(tmp_path, scenario)


def test_a_deleted_partition_needs_no_marker(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer)
        await node.end(producer)
        node.leaders.answer(b=ErrorCode.unknown_topic_or_partition)
        node.leaders.deleted.add(B)
        await asyncio.sleep(1)
        assert (node.state, node.leaders.waiting) == ("CompleteCommit", [])

    on_transaction_node(tmp_path, scenario)


@pytest.mark.parametrize(
    "error", [ErrorCode.invalid_producer_epoch, ErrorCode.transaction_coordinator_fenced]
)
def test_a_fenced_coordinator_sends_no_more_markers(tmp_path: Path, error: ErrorCode) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer)
        await node.end(producer)
        node.leaders.answer(a=error, b=ErrorCode.not_leader_or_follower)
        await asyncio.sleep(1)
        assert (node.state, node.leaders.waiting) == ("PrepareCommit", [])

    on_transaction_node(tmp_path, scenario)


def test_the_next_coordinator_ends_the_transaction(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer)
        await node.end(producer)
        node.give_role(2, 1)
        assert await node.add(producer) is ErrorCode.not_coordinator
        node.leaders.answer()
        assert node.stored()[ID].state.value == "PrepareCommit", "what comes late has no effect"
        await node.lead(2)
        assert (await node.init()).error is CONCURRENT
        assert node.leaders.answer().coordinator_epoch == 2
        assert node.state == "CompleteCommit"
        assert (await node.begun()).epoch == 1

    on_transaction_node(tmp_path, scenario)


def test_a_decision_that_only_its_new_coordinator_has_gets_no_markers(tmp_path: Path) -> None:
    """If that broker failed too, a third one would abort what some partitions have as committed."""

    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer)
        await node.end(producer)
        node.leaders.waiting.clear()
        await node.lead(1, isr=(1, 2))
        await asyncio.sleep(1)
        assert node.state == "PrepareCommit"
        assert node.leaders.waiting == []
        await node.lead(2)
        await asyncio.sleep(1)
        markers = [node.leaders.answer() for _ in list(node.leaders.waiting)]
        assert markers[-1].coordinator_epoch == 2
        assert node.state == "CompleteCommit"

    on_transaction_node(tmp_path, scenario)


def test_an_open_transaction_outlives_its_coordinator(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer, A)
        await node.lead(1)
        assert await node.add(producer, B) is NONE
        assert node.coordinator.describe_transaction(ID).partitions == {A, B}

    on_transaction_node(tmp_path, scenario)


def test_a_transaction_that_is_open_too_long_is_aborted(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer)
        await asyncio.sleep(TIMEOUT_MS / 1000 - 1)
        assert node.state == "Ongoing"
        await asyncio.sleep(12)
        assert node.state == "PrepareAbort"
        assert node.leaders.answer().producer_epoch == producer.epoch + 1
        assert await node.end(producer) is ErrorCode.producer_fenced
        assert (await node.begun()).epoch == producer.epoch + 2

    on_transaction_node(tmp_path, scenario)


def test_a_fence_that_is_not_stored_raises_the_epoch_once(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead(isr=(1,))
        producer = await node.begun(timeout_ms=1000)
        await node.add(producer)
        node.give_role(1, 1, isr=(1, 2))
        while node.transactions.is_loading:
            await asyncio.sleep(0.01)
        for _ in range(2):
            assert (await node.init()).error is ErrorCode.coordinator_not_available
            assert await node.end(producer) is ErrorCode.producer_fenced
        description = node.coordinator.describe_transaction(ID)
        assert (description.state, description.producer_epoch) == ("Ongoing", producer.epoch + 1)

    on_transaction_node(tmp_path, scenario)


def test_an_idle_id_expires(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        await node.begun()
        await asyncio.sleep(18)
        assert ID in node.stored()
        await asyncio.sleep(10)
        assert node.stored() == {}
        assert node.coordinator.list_transactions((), (), -1).transactions == ()
        assert (await node.begun()).producer_id == 101

    cleanup = "transaction.remove.expired.transaction.cleanup.interval.ms"
    properties = {"transactional.id.expiration.ms": 20_000, cleanup: 5_000}
    on_transaction_node(tmp_path, scenario, **properties)


def test_idle_ids_expire_in_batches_that_fit(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        names = (f"{number}-{'x' * 30_000}" for number in count())
        ids = islice((n for n in names if partition_for(n, PARTITIONS) == NUMBER), 40)
        for transactional_id in ids:
            assert (await node.init(transactional_id=transactional_id)).error is NONE
        await asyncio.sleep(30)
        assert node.stored() == {}
        assert node.coordinator.list_transactions((), (), -1).transactions == ()

    cleanup = "transaction.remove.expired.transaction.cleanup.interval.ms"
    on_transaction_node(
        tmp_path, scenario, **{"transactional.id.expiration.ms": 20_000, cleanup: 5_000}
    )


def test_transactions_are_listed_and_verified(tmp_path: Path) -> None:
    async def scenario(node: TransactionNode) -> None:
        await node.lead()
        producer = await node.begun()
        await node.add(producer, A)
        verified = node.coordinator.verify_partitions(producer, [A, B])
        assert verified == {A: NONE, B: ErrorCode.transaction_abortable}
        stale = replace(producer, epoch=5)
        assert node.coordinator.verify_partitions(stale, [A]) == {A: ErrorCode.producer_fenced}
        await asyncio.sleep(5)

        def listed(states: tuple[str, ...] = (), ids: tuple[int, ...] = (), ms: int = -1) -> int:
            return len(node.coordinator.list_transactions(states, ids, ms).transactions)

        assert [listed(), listed(("Ongoing",)), listed(ids=(100,)), listed(ms=4000)] == [1] * 4
        assert [listed(("Empty",)), listed(ids=(7,)), listed(ms=6000)] == [0] * 3
        assert node.coordinator.list_transactions(("x",), (), -1).unknown_states == ("x",)
        await node.end(producer)
        assert node.coordinator.verify_partitions(producer, [A]) == {A: CONCURRENT}
        node.give_role(2, 1)
        assert listed() == 0

    on_transaction_node(tmp_path, scenario)

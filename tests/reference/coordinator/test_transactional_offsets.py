"""Offsets that are committed in transactions, on a broker with real logs; the log gives them again at any time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_offsets import GroupOffsets, OffsetAndMetadata
from nemesis.reference.coordinator.group.group_results import JoinGroupResult, MemberIdentity
from nemesis.reference.model import TopicPartition, TransactionalProducer
from nemesis.reference.protocol.record_batch import iter_batches
from tests.reference.cluster.hosting import TP
from tests.reference.coordinator.group_node import (
    GROUP,
    PRODUCER_ID,
    TRANSACTIONAL_ID,
    GroupNode,
    offsets_partition,
    on_group_node,
)

NONE = ErrorCode.none
UNSTABLE = ErrorCode.unstable_offset_commit
OTHER = TopicPartition("u", 1)
RETENTION = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 5_000}


def state(group: GroupMetadata | None) -> object:
    """The committed and pending offsets, with their positions in the log."""
    if group is None:
        return {}, {}
    offsets = group.offsets
    pending = {key: dict(items) for key, items in offsets.transactional.items() if items}
    return {key: offsets.get(key) for key in offsets.partitions}, pending


def assert_log_agrees(node: GroupNode) -> None:
    assert state(node.stored().get(GROUP)) == state(node.groups.get_group(GROUP))


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_marker_decides_about_pending_offsets(tmp_path: Path, is_commit: bool) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        assert await node.commit(3) is NONE
        assert await node.commit_in_transaction(7) is NONE
        assert node.fetch() == (NONE, 3)
        assert node.fetch(require_stable=True) == (UNSTABLE, -1)
        assert await node.end_transaction(is_commit=is_commit) is NONE
        assert node.fetch(require_stable=True) == (NONE, 7 if is_commit else 3)
        assert_log_agrees(node)

    on_group_node(tmp_path, scenario)


def test_the_records_are_those_of_a_transaction(tmp_path: Path) -> None:
    """Of the producer and its epoch, without sequence numbers, as Kafka writes them."""

    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit_in_transaction(7, epoch=2)
        log = node.node.logs.get_log(offsets_partition())
        assert log is not None
        data = log.read(0, 1 << 20, log.log_end_offset, min_one_message=True)
        (header,) = iter_batches(data)
        assert header.is_transactional
        assert not header.is_control
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
        (entry,) = log.producer_state_manager.active_producers.values()
        assert (entry.last_sequence, entry.current_txn_first_offset) == (-1, 0)
        assert log.last_stable_offset == 0
        assert await node.commit_in_transaction(8, epoch=2) is NONE
        assert log.log_end_offset == 2, "the same sequence number is not a repetition"
        assert await node.commit_in_transaction(9, epoch=1) is ErrorCode.invalid_producer_epoch
        await node.end_transaction(is_commit=True, epoch=2)
        assert node.fetch() == (NONE, 8)

    on_group_node(tmp_path, scenario)


VERIFIES = {"transaction.partition.verification.enable": True}


def test_offsets_wait_for_the_verification_of_their_partition(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        answer = node.commit_in_transaction(7)
        (asked,) = node.coordinators.questions
        assert asked.producer == TransactionalProducer(TRANSACTIONAL_ID, PRODUCER_ID, 0)
        assert asked.partitions == {offsets_partition()}
        assert not asked.knows_abortable
        assert node.fetch(require_stable=True) == (NONE, -1)
        asked.settle()
        assert await answer is NONE
        assert node.fetch(require_stable=True) == (UNSTABLE, -1)
        assert await node.commit_in_transaction(8) is NONE, "the transaction is open in the log"
        await node.end_transaction(is_commit=True)
        assert node.fetch(require_stable=True) == (NONE, 8)

    on_group_node(tmp_path, scenario, **VERIFIES)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (ErrorCode.network_exception, ErrorCode.coordinator_load_in_progress),
        (ErrorCode.not_coordinator, ErrorCode.not_coordinator),
        (ErrorCode.concurrent_transactions, ErrorCode.concurrent_transactions),
        (ErrorCode.invalid_txn_state, ErrorCode.invalid_txn_state),
        (ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_epoch),
    ],
)
def test_offsets_outside_of_the_transaction_are_not_written(
    tmp_path: Path, error: ErrorCode, reported: ErrorCode
) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        answer = node.commit_in_transaction(7)
        node.coordinators.questions.pop().settle(error)
        assert await answer is reported
        assert node.fetch(require_stable=True) == (NONE, -1)
        log = node.node.logs.get_log(offsets_partition())
        assert log is not None
        assert log.log_end_offset == 0

    on_group_node(tmp_path, scenario, **VERIFIES)


def test_a_verification_from_before_the_marker_is_void(tmp_path: Path) -> None:
    """Else the offsets would be pending until the producer commits again in this partition, perhaps for ever."""

    async def scenario(node: GroupNode) -> None:
        await node.lead()
        answer = node.commit_in_transaction(7)
        assert await node.end_transaction(is_commit=False) is NONE
        node.coordinators.questions.pop().settle()
        assert await answer is ErrorCode.invalid_txn_state
        assert node.fetch(require_stable=True) == (NONE, -1)

    on_group_node(tmp_path, scenario, **VERIFIES)


def test_a_coordinator_that_resigns_during_a_verification_writes_nothing(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        answer = node.commit_in_transaction(7)
        node.give_role(2, 1)
        node.coordinators.questions.pop().settle()
        assert await answer in {
            ErrorCode.not_coordinator,
            ErrorCode.coordinator_not_available,
        }

    on_group_node(tmp_path, scenario, **VERIFIES)


@pytest.mark.parametrize("is_commit", [True, False])
def test_pending_offsets_survive_their_coordinator(tmp_path: Path, is_commit: bool) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit_in_transaction(7)
        node.give_role(2, 1)
        assert node.fetch()[0] is ErrorCode.not_coordinator
        await node.lead(2)
        assert node.fetch() == (NONE, -1)
        assert node.fetch(require_stable=True) == (UNSTABLE, -1)
        assert await node.end_transaction(is_commit=is_commit) is NONE
        assert node.fetch(require_stable=True) == (NONE, 7 if is_commit else -1)
        assert_log_agrees(node)

    on_group_node(tmp_path, scenario)


def test_a_transaction_that_ends_during_the_loading_is_complete_after_it(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit_in_transaction(7)
        node.give_role(2, 1)
        node.loading_may_go_on.clear()
        node.give_role(1, 2)
        await asyncio.sleep(0.1)
        assert await node.end_transaction(is_commit=True) is NONE
        node.loading_may_go_on.set()
        await asyncio.sleep(0.1)
        assert node.fetch(require_stable=True) == (NONE, 7)
        assert_log_agrees(node)

    on_group_node(tmp_path, scenario)


def test_a_later_commit_outlives_the_transaction(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit_in_transaction(7)
        await node.commit(9)
        await node.end_transaction(is_commit=True)
        assert node.fetch() == (NONE, 9)
        assert_log_agrees(node)

    on_group_node(tmp_path, scenario)


def test_transactions_of_other_producers_stay_open(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit_in_transaction(7)
        await node.commit_in_transaction(8, producer_id=9)
        await node.commit_in_transaction(1, producer_id=9, topic_partition=OTHER)
        await node.end_transaction(is_commit=True)
        assert (node.fetch(), node.fetch(OTHER)) == ((NONE, 7), (NONE, -1))
        assert node.fetch(require_stable=True) == (UNSTABLE, -1)
        assert node.fetch(OTHER, require_stable=True) == (UNSTABLE, -1)
        assert await node.end_transaction(is_commit=True, producer_id=9) is NONE
        assert node.fetch(require_stable=True) == (NONE, 8)
        assert node.fetch(OTHER, require_stable=True) == (NONE, 1)
        assert_log_agrees(node)

    on_group_node(tmp_path, scenario)


def test_members_are_checked_where_the_producer_names_one(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        assert await node.commit_in_transaction(1) is ErrorCode.not_coordinator
        await node.lead()
        (member,) = await node.stable(group_instance_id="i")
        assert await node.commit_in_transaction(1) is NONE, "as older producers do"
        assert await node.commit_in_transaction(1, member) is NONE
        fenced = await node.commit_in_transaction(1, _other(member), instance="i")
        assert fenced is ErrorCode.fenced_instance_id
        unknown = ErrorCode.unknown_member_id
        assert await node.commit_in_transaction(1, _other(member)) is unknown
        assert await node.commit_in_transaction(1, member, instance="j") is unknown
        again = await node.join(member.member_id, group_instance_id="i")
        assert await node.commit_in_transaction(1, member) is ErrorCode.illegal_generation
        assert await node.commit_in_transaction(1, again) is NONE, "also before its assignment"
        invalid = ErrorCode.invalid_group_id
        assert await node.commit_in_transaction(1, group_id="") is invalid
        node.coordinator.leave_group(GROUP, [MemberIdentity(again.member_id, None)])
        assert await node.commit_in_transaction(1, again) is unknown
        node.coordinator.delete_groups([GROUP])
        assert await node.commit_in_transaction(1, again) is unknown

    on_group_node(tmp_path, scenario)


def _other(member: JoinGroupResult) -> JoinGroupResult:
    return replace(member, member_id="other")


def test_a_transactional_commit_is_no_sign_of_life(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        (member,) = await node.stable()
        for _ in range(5):
            await asyncio.sleep(4)
            await node.commit_in_transaction(1, member)
        assert node.heartbeat(member) is ErrorCode.unknown_member_id

    on_group_node(tmp_path, scenario)


def test_what_is_not_replicated_does_not_stay_pending(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead(isr=(1, 2, 3))
        commit = node.commit_in_transaction(7)
        await asyncio.sleep(1)
        assert not commit.done()
        assert node.fetch(require_stable=True) == (UNSTABLE, -1)
        assert await commit is ErrorCode.request_timed_out
        assert node.fetch(require_stable=True) == (NONE, -1)

    on_group_node(tmp_path, scenario)


def test_a_group_with_pending_offsets_only_does_not_expire(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit(3)
        await node.commit_in_transaction(7)
        await asyncio.sleep(70)
        assert node.fetch() == (NONE, -1), "as in Kafka, the pending commit does not keep it"
        assert node.fetch(require_stable=True) == (UNSTABLE, -1)
        await node.end_transaction(is_commit=True)
        assert node.fetch(require_stable=True) == (NONE, 7)
        assert_log_agrees(node)

    on_group_node(tmp_path, scenario, **RETENTION)


def test_pending_offsets_of_a_partition_are_deleted_with_it(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        await node.commit_in_transaction(7)
        await node.commit_in_transaction(8, topic_partition=OTHER)
        assert node.coordinator.delete_offsets(GROUP, [TP]) == (NONE, {TP: NONE})
        assert node.fetch(require_stable=True) == (NONE, -1)
        assert node.fetch(OTHER, require_stable=True) == (UNSTABLE, -1)
        await node.end_transaction(is_commit=True)
        assert (node.fetch(), node.fetch(OTHER)) == ((NONE, -1), (NONE, 8))

    on_group_node(tmp_path, scenario)


def test_a_marker_does_not_end_the_commits_behind_it() -> None:
    offsets = GroupOffsets()
    first, second = (OffsetAndMetadata(number, -1, "", 0) for number in (1, 2))
    offsets.prepare_transactional((TP, OTHER))
    offsets.store_transactional(PRODUCER_ID, {TP: first, OTHER: first}, 10)
    offsets.prepare_transactional((TP,))
    offsets.store_transactional(PRODUCER_ID, {TP: second}, 12)
    offsets.complete_transactional(PRODUCER_ID, 11, is_commit=True)
    assert (offsets.get(TP), offsets.get(OTHER)) == (None, first)
    assert (offsets.is_pending(TP), offsets.is_pending(OTHER)) == (True, False)
    offsets.complete_transactional(PRODUCER_ID, 13, is_commit=True)
    assert offsets.get(TP) == second
    assert offsets.transactional == {}


def test_commits_of_a_transaction_on_their_way_are_independent() -> None:
    offsets = GroupOffsets()
    first, second = (OffsetAndMetadata(number, -1, "", 0) for number in (1, 2))
    offsets.prepare_transactional((TP,))
    offsets.prepare_transactional((TP,))
    offsets.store_transactional(PRODUCER_ID, {TP: second}, 11)
    offsets.store_transactional(PRODUCER_ID, {TP: first}, 10)
    offsets.prepare_transactional((TP,))
    offsets.fail_transactional((TP,))
    assert offsets.is_pending(TP)
    assert not offsets.is_empty
    offsets.prepare_transactional((TP, OTHER))
    assert offsets.remove((TP, OTHER)) == ()
    offsets.store_transactional(9, {TP: first, OTHER: first}, 12)
    offsets.complete_transactional(PRODUCER_ID, 13, is_commit=True)
    assert (offsets.get(TP), offsets.is_pending(TP), offsets.is_pending(OTHER)) == (
        None,
        False,
        False,
    )


KEYS = st.sampled_from((TP, OTHER))
PRODUCERS = st.integers(5, 7)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), KEYS, st.integers(0, 99)),
        st.tuples(st.just("pend"), KEYS, st.integers(0, 99), PRODUCERS),
        st.tuples(st.just("end"), PRODUCERS, st.booleans()),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("move")),
    ),
    max_size=20,
)


class Model:
    """The offsets by the rules of transactions, without positions in a log: the commits in their sequence."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, tuple[int, int]] = {}
        """The number of the commit, and its offset."""
        self.pending: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
        self._count = 0

    def add(self, key: TopicPartition, offset: int, producer_id: int | None) -> None:
        self._count += 1
        owner = self.committed if producer_id is None else self.pending.setdefault(producer_id, {})
        owner[key] = (self._count, offset)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        for key, commit in self.pending.pop(producer_id, {}).items():
            if is_commit:
                self.committed[key] = max(commit, self.committed.get(key, commit))

    def fetched(self, key: TopicPartition) -> tuple[tuple[ErrorCode, int], tuple[ErrorCode, int]]:
        """The answers without and with ``require_stable``."""
        committed = (NONE, self.committed.get(key, (0, -1))[1])
        is_pending = any(key in offsets for offsets in self.pending.values())
        return committed, (UNSTABLE, -1) if is_pending else committed


async def take(step: tuple[Any, ...], node: GroupNode, model: Model, epoch: int) -> None:
    match step:
        case ("commit", key, offset):
            assert await node.commit(offset, topic_partition=key) is NONE
            model.add(key, offset, None)
        case ("pend", key, offset, producer_id):
            answer = node.commit_in_transaction(
                offset, producer_id=producer_id, topic_partition=key
            )
            assert await answer is NONE
            model.add(key, offset, producer_id)
        case ("end", producer_id, is_commit):
            assert await node.end_transaction(is_commit=is_commit, producer_id=producer_id) is NONE
            model.end(producer_id, is_commit=is_commit)
        case ("delete", key):
            if model.fetched(key)[1][0] is not UNSTABLE:  # else the log has more than the group
                node.coordinator.delete_offsets(GROUP, [key])
                model.committed.pop(key, None)
        case _:
            node.give_role(2, epoch)
            await node.lead(epoch + 1)


@settings(max_examples=20, deadline=None)
@given(STEPS)
def test_the_log_gives_committed_and_pending_offsets_again(steps: list[tuple[Any, ...]]) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        model = Model()
        for number, step in enumerate(steps):
            await take(step, node, model, 2 * number + 1)
            assert_log_agrees(node)
            for key in (TP, OTHER):
                fetched = node.fetch(key), node.fetch(key, require_stable=True)
                assert fetched == model.fetched(key)

    with TemporaryDirectory() as directory:
        on_group_node(Path(directory), scenario)

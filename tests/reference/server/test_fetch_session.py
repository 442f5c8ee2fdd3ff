"""Fetch sessions: what a client need not say again, what it is not told again, and whose session may be replaced."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    EpochEndOffset,
    FetchPartitionRequest,
    FetchPartitionResult,
    TopicPartition,
)
from nemesis.reference.server.fetch_manager import (
    FetchAnswer,
    FetchContext,
    FetchManager,
    FetchMetadata,
)
from nemesis.reference.server.fetch_session import (
    EVICTION_S,
    FetchSession,
    FetchSessionCache,
    ForgottenPartitions,
    unnamed_topic,
)
from tests.reference.virtual_time import run

TOPIC_ID = UUID(int=7)
NAMES: dict[UUID, str] = {TOPIC_ID: "t"}
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def asked(
    key: TopicPartition, offset: int = 0, epoch: int = 4, topic_id: UUID = TOPIC_ID
) -> FetchPartitionRequest:
    return FetchPartitionRequest(key, topic_id, epoch, offset, -1, 0, 1 << 20)


def read_result(
    key: TopicPartition,
    high_watermark: int = 0,
    *,
    records: bytes = b"",
    error: ErrorCode = ErrorCode.none,
    diverging: EpochEndOffset | None = None,
) -> FetchPartitionResult:
    return FetchPartitionResult(key, error, high_watermark, 0, records, diverging)


class Client:
    """Fetches, one after the other."""

    def __init__(self, slots: int = 10) -> None:
        self.names = dict(NAMES)
        self.manager = FetchManager(slots, rng=Random(1), topic_name=self.names.get)
        self.session_id = 0
        self.epoch = 0

    def fetch(
        self,
        *requests: FetchPartitionRequest,
        results: tuple[FetchPartitionResult, ...] = (),
        forgotten: ForgottenPartitions = (),
        uses_topic_ids: bool = True,
    ) -> FetchAnswer:
        """``results`` are those that differ from "nothing new at high watermark 0"."""
        context = self.manager.new_context(
            FetchMetadata(self.session_id, self.epoch),
            {request.topic_partition: request for request in requests},
            forgotten,
            is_follower=True,
            uses_topic_ids=uses_topic_ids,
        )
        self.observed = context.requests
        outcome = {key: read_result(key) for key in context.requests}
        outcome |= {result.topic_partition: result for result in results}
        answer = context.answer(outcome)
        if answer.error is ErrorCode.none:
            self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return answer


def with_client(scenario: Callable[[Client], None], slots: int = 10) -> None:
    async def main() -> None:
        scenario(Client(slots))

    run(main())


def test_a_session_is_asked_and_told_what_is_new() -> None:
    def scenario(client: Client) -> None:
        assert list(client.fetch(asked(A), asked(B)).results) == [A, B]
        assert client.session_id > 0
        assert client.fetch().results == {}
        assert client.observed == {A: asked(A), B: asked(B)}
        moved = client.fetch(asked(B, offset=3), results=(read_result(A, 5),))
        assert list(moved.results) == [A]
        assert client.observed[B].fetch_offset == 3
        assert client.fetch(results=(read_result(A, 5),)).results == {}
        assert list(
            client.fetch(results=(read_result(A, 5), read_result(B, records=b"x"))).results
        ) == [B]

    with_client(scenario)


@pytest.mark.parametrize(
    "trouble",
    [
        read_result(A, 5, error=ErrorCode.not_leader_or_follower),
        read_result(A, 5, diverging=EpochEndOffset(3, 2)),
    ],
)
def test_what_the_client_may_not_have_taken_in_is_told_again(
    trouble: FetchPartitionResult,
) -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A), asked(B))
        for _ in range(2):
            assert list(client.fetch(results=(trouble,)).results) == [A]
        assert list(client.fetch(results=(read_result(A, 5),)).results) == [A]
        assert list(client.fetch(asked(A, epoch=5), results=(read_result(A, 5),)).results) == [A]
        assert client.fetch(results=(read_result(A, 5),)).results == {}

    with_client(scenario)


def test_the_leader_epoch_stays_with_the_partition() -> None:
    """KAFKA-9338: or a follower that was told of a newer leader would be fenced by its first fetch only."""

    def scenario(client: Client) -> None:
        client.fetch(asked(A, epoch=4))
        client.fetch()
        assert client.observed[A].current_leader_epoch == 4
        client.fetch(asked(A, epoch=6))
        client.fetch()
        assert client.observed[A].current_leader_epoch == 6

    with_client(scenario)


def test_a_forgotten_partition_leaves_and_an_empty_session_ends() -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A), asked(B))
        client.fetch(forgotten=[(UUID(int=8), 0)])
        assert set(client.observed) == {A, B}
        client.fetch(forgotten=[(TOPIC_ID, 0)])
        assert set(client.observed) == {B}
        assert client.fetch(forgotten=[(TOPIC_ID, 1)]).session_id == 0
        assert len(client.manager.cache) == 0

    with_client(scenario)


def test_a_topic_that_came_back_under_its_name_replaces_the_earlier_one() -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A))
        again = UUID(int=9)
        answer = client.fetch(asked(A, topic_id=again), forgotten=[(TOPIC_ID, 0)])
        assert client.observed[A].topic_id == again
        assert list(answer.results) == [A], "its offsets are those of another log, though equal"

    with_client(scenario)


def test_a_topic_gets_its_name_when_the_broker_hears_of_it() -> None:
    def scenario(client: Client) -> None:
        later = UUID(int=8)
        unnamed = TopicPartition(unnamed_topic(later), 0)
        client.fetch(asked(A), asked(unnamed, topic_id=later))
        client.fetch()
        assert set(client.observed) == {A, unnamed}
        client.names[later] = "later"
        assert list(client.fetch().results) == [TopicPartition("later", 0)]
        named = TopicPartition("later", 0)
        assert client.observed[named].topic_partition == named
        assert set(client.observed) == {A, named}

    with_client(scenario)


def test_fetches_out_of_order_are_refused() -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A))
        client.epoch = 5
        assert client.fetch().error is ErrorCode.invalid_fetch_session_epoch
        client.epoch = 1
        assert client.fetch(uses_topic_ids=False).error is ErrorCode.fetch_session_topic_id_error
        client.session_id += 1
        assert client.fetch().error is ErrorCode.fetch_session_id_not_found

    with_client(scenario)


def test_an_answer_that_was_overtaken_by_the_next_fetch_tells_nothing() -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A))

        def begin(epoch: int) -> FetchContext:
            return client.manager.new_context(
                FetchMetadata(client.session_id, epoch),
                {},
                (),
                is_follower=True,
                uses_topic_ids=True,
            )

        first, second = begin(1), begin(2)
        late = first.answer({A: read_result(A, 3)})
        assert (late.error, late.results) == (ErrorCode.invalid_fetch_session_epoch, {})
        assert list(second.answer({A: read_result(A, 3)}).results) == [A]

    with_client(scenario)


def test_a_full_fetch_ends_the_session_that_it_names() -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A))
        client.epoch = -1
        assert client.fetch(asked(A)).session_id == 0
        assert len(client.manager.cache) == 0

    with_client(scenario)


def test_without_room_a_fetch_is_answered_without_a_session() -> None:
    def scenario(client: Client) -> None:
        answer = client.fetch(asked(A))
        assert (answer.error, answer.session_id, list(answer.results)) == (ErrorCode.none, 0, [A])

    with_client(scenario, slots=0)


def test_a_partition_that_was_served_goes_to_the_end_of_the_line() -> None:
    def scenario(client: Client) -> None:
        client.fetch(asked(A), asked(B), results=(read_result(A, records=b"x"),))
        client.fetch()
        assert list(client.observed) == [B, A]

    with_client(scenario)


def filled(cache: FetchSessionCache, *, is_privileged: bool, size: int, now: float) -> FetchSession:
    session = cache.maybe_create(
        is_privileged=is_privileged, uses_topic_ids=True, size=size, now=now
    )
    assert session is not None
    partitions = [TopicPartition("t", number) for number in range(size)]
    session.update({key: asked(key) for key in partitions}, (), NAMES.get)
    return session


@pytest.mark.parametrize(
    ("held", "age", "idle", "newcomer", "is_replaced"),
    [
        ((False, 9), 0, 0, (False, 99), False),  # young
        ((False, 9), 0, 0, (True, 1), True),  # a consumer makes room for a follower
        ((True, 9), 0, 0, (True, 99), False),  # young
        ((True, 9), EVICTION_S + 1, 0, (True, 9), False),  # worth as much, and there before
        ((True, 9), EVICTION_S + 1, 0, (True, 10), True),
        ((True, 9), EVICTION_S + 1, 0, (False, 99), False),
        ((False, 9), EVICTION_S + 1, 0, (False, 10), True),
        ((False, 9), EVICTION_S + 1, 0, (False, 8), False),
        ((True, 9), 0, EVICTION_S + 1, (False, 1), True),  # nobody uses it
    ],
)
def test_whose_place_a_new_session_takes(
    held: tuple[bool, int],
    age: float,
    idle: float,
    newcomer: tuple[bool, int],
    is_replaced: bool,
) -> None:
    cache = FetchSessionCache(1, rng=Random(1))
    first = filled(cache, is_privileged=held[0], size=held[1], now=0.0)
    cache.touch(first, age)
    created = cache.maybe_create(
        is_privileged=newcomer[0], uses_topic_ids=True, size=newcomer[1], now=age + idle
    )
    assert (created is not None) == is_replaced
    assert (cache.get(first.id) is None) == is_replaced
    assert len(cache) == 1


@given(st.lists(st.sampled_from(["raise-a", "raise-b", "epoch", "forget", "fail"])))
def test_a_client_knows_every_high_watermark_after_each_answer(steps: list[str]) -> None:
    """Whatever happened before: what the answers of a session tell adds up to what full answers would tell."""

    def scenario(client: Client) -> None:
        truth, known = {A: 0, B: 0}, dict[TopicPartition, int]()
        epoch = 4
        client.fetch(asked(A), asked(B))
        known |= {A: 0, B: 0}
        for step in steps:
            requests: tuple[FetchPartitionRequest, ...] = ()
            error = ErrorCode.none
            if step == "raise-a":
                truth[A] += 1
            elif step == "raise-b":
                truth[B] += 1
            elif step == "epoch":
                epoch += 1
                requests, known[A] = (asked(A, epoch=epoch),), -1
            elif step == "forget":
                client.fetch(forgotten=[(TOPIC_ID, 0)], results=(read_result(B, truth[B]),))
                known[B] = truth[B]
                requests, known[A] = (asked(A, epoch=epoch),), -1
            else:
                error = ErrorCode.unknown_leader_epoch
            results = (read_result(A, truth[A], error=error), read_result(B, truth[B]))
            answer = client.fetch(*requests, results=results)
            for key, result in answer.results.items():
                if result.error is ErrorCode.none:
                    known[key] = result.high_watermark
            if error is not ErrorCode.none:
                known[A] = -1
            assert known[B] == truth[B]
            assert known[A] in (truth[A], -1)
            assert (known[A] == -1) == (error is not ErrorCode.none)

    with_client(scenario)

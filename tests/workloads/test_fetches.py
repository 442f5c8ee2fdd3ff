"""Fetch sessions from the client's side: what a request names, what an answer means, what follows an error."""

from __future__ import annotations

import datetime
from typing import cast
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import request as fetch
from kio.schema.fetch.v13 import response as answer
from kio.static.primitive import Records, i32, i32Timedelta, i64

from nemesis.workloads.kafka.errors import BrokerError, KafkaError
from nemesis.workloads.kafka.fetches import (
    FetchExchange,
    FetchPosition,
    FetchSession,
    PartitionAnswer,
    PartitionKey,
)

TOPIC, OTHER_TOPIC = UUID(int=7), UUID(int=8)
A, B, C = (TOPIC, 0), (TOPIC, 1), (OTHER_TOPIC, 0)
SESSION = 55
NOW = cast("i32Timedelta", datetime.timedelta(0))


def ask(session: FetchSession, **offsets: int) -> fetch.FetchRequest:
    """Ask for partitions by their names here, all in leader epoch 1."""
    keys = {"a": A, "b": B, "c": C}
    positions = {keys[name]: FetchPosition(offset, 1) for name, offset in offsets.items()}
    return session.request(positions, max_wait=NOW, max_bytes=100)


def result(
    key: PartitionKey,
    high_watermark: int,
    *,
    log_start: int = 0,
    records: bytes = b"",
    error: ErrorCode = ErrorCode.none,
) -> answer.FetchableTopicResponse:
    data = answer.PartitionData(
        partition_index=i32(key[1]),
        error_code=error,
        high_watermark=i64(high_watermark),
        log_start_offset=i64(log_start),
        aborted_transactions=None,
        records=cast("Records", records),
    )
    return answer.FetchableTopicResponse(topic_id=key[0], partitions=(data,))


def response(
    *results: answer.FetchableTopicResponse,
    session_id: int = SESSION,
    error: ErrorCode = ErrorCode.none,
) -> answer.FetchResponse:
    return answer.FetchResponse(
        throttle_time=NOW, error_code=error, session_id=i32(session_id), responses=results
    )


def named(request: fetch.FetchRequest) -> dict[PartitionKey, int]:
    """Return the partitions that a request names, with their positions."""
    return {
        (cast("UUID", topic.topic_id), int(partition.partition)): int(partition.fetch_offset)
        for topic in request.topics
        for partition in topic.partitions
    }


def forgotten(request: fetch.FetchRequest) -> set[PartitionKey]:
    return {
        (cast("UUID", topic.topic_id), int(partition))
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    }


def state(request: fetch.FetchRequest) -> tuple[int, int]:
    return int(request.session_id), int(request.session_epoch)


def opened(**offsets: int) -> FetchSession:
    """Return a session that a broker opened, with the high watermark 9 of each partition."""
    session = FetchSession()
    request = ask(session, **offsets)
    session.answered(response(*(result(key, 9) for key in named(request))))
    return session


def test_the_first_request_names_everything_and_asks_for_a_session() -> None:
    request = ask(FetchSession(), a=3, b=4, c=5)
    assert state(request) == (0, 0)
    assert named(request) == {A: 3, B: 4, C: 5}


def test_without_sessions_every_request_names_everything_and_asks_for_none() -> None:
    session = FetchSession(is_kept=False)
    for _ in range(2):
        request = ask(session, a=3)
        assert (state(request), named(request)) == ((0, -1), {A: 3})
        session.answered(response(result(A, 9), session_id=0))


def test_a_further_request_names_what_differs() -> None:
    request = ask(opened(a=3, b=4), a=3, b=6, c=0)
    assert state(request) == (SESSION, 1)
    assert named(request) == {B: 6, C: 0}
    assert forgotten(request) == set()


def test_each_answer_raises_the_epoch() -> None:
    session = opened(a=3)
    for epoch in (1, 2, 3):
        assert state(ask(session, a=3)) == (SESSION, epoch)
        session.answered(response())


def test_what_is_asked_for_no_more_is_forgotten() -> None:
    session = opened(a=3, b=4)
    assert forgotten(ask(session, b=4)) == {A}
    session.answered(response())
    request = ask(session, a=3, b=4)
    assert (named(request), forgotten(request)) == ({A: 3}, set())


def nothing(high_watermark: int, log_start: int = 0) -> PartitionAnswer:
    return PartitionAnswer(b"", high_watermark, log_start)


def test_what_an_answer_leaves_out_has_the_offsets_stated_last_and_no_records() -> None:
    session = opened(a=3, b=4)
    ask(session, a=3, b=4)
    answers = session.answered(response(result(B, 11, log_start=2, records=b"x")))
    assert answers == {A: nothing(9), B: PartitionAnswer(b"x", 11, 2)}
    ask(session, a=3, b=4)
    assert session.answered(response()) == {A: nothing(9), B: nothing(11, 2)}


def test_an_error_of_a_partition_leaves_the_session_and_the_other_partitions_alone() -> None:
    session = opened(a=3, b=4)
    ask(session, a=3, b=4)
    refused = result(A, -1, error=ErrorCode.not_leader_or_follower)
    answers = session.answered(response(refused))
    assert isinstance(answers[A], BrokerError)
    assert answers[B] == nothing(9)
    assert state(ask(session, b=4)) == (SESSION, 2)


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.fetch_session_id_not_found, 0),
        (ErrorCode.invalid_fetch_session_epoch, SESSION),
        (ErrorCode.fetch_session_topic_id_error, SESSION),
    ],
)
def test_after_an_error_of_the_request_the_next_one_is_full(
    error: ErrorCode, session_id: int
) -> None:
    session = opened(a=3, b=4)
    ask(session, a=3, b=4)
    with pytest.raises(BrokerError):
        session.answered(response(error=error, session_id=0))
    request = ask(session, a=3, b=4)
    assert state(request) == (session_id, 0)
    assert named(request) == {A: 3, B: 4}


def test_after_no_answer_the_next_request_is_full_and_ends_the_session() -> None:
    session = opened(a=3)
    ask(session, a=3)
    session.failed()
    assert state(ask(session, a=3)) == (SESSION, 0)


def test_a_broker_without_room_for_a_session_is_asked_again_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        request = ask(session, a=3)
        assert (state(request), named(request)) == ((0, 0), {A: 3})
        session.answered(response(result(A, 9), session_id=0))


def test_an_incremental_answer_without_a_session_ends_it() -> None:
    session = opened(a=3)
    ask(session, a=3)
    session.answered(response(session_id=0))
    assert state(ask(session, a=3)) == (0, 0)


def test_a_partition_that_was_not_asked_for_makes_the_answer_invalid() -> None:
    session = opened(a=3)
    ask(session, a=3)
    with pytest.raises(KafkaError, match="OTHER_PARTITIONS_ANSWERED"):
        session.answered(response(result(B, 9)))
    assert state(ask(session, a=3)) == (SESSION, 0)


def test_a_full_answer_has_every_partition() -> None:
    session = FetchSession()
    ask(session, a=3, b=4)
    with pytest.raises(KafkaError, match="OTHER_PARTITIONS_ANSWERED"):
        session.answered(response(result(A, 9)))


def test_an_exchange_has_what_request_and_answer_name() -> None:
    session = opened(a=3, b=4)
    assert session.take_exchange() == FetchExchange(0, 0, (A, B), (), (A, B))
    ask(session, a=3, c=0)
    assert session.take_exchange() is None, "no answer yet"
    with pytest.raises(KafkaError):
        session.answered(response(result(B, 9)))
    exchange = session.take_exchange()
    assert exchange == FetchExchange(SESSION, 1, (C,), (B,), (B,))
    assert not exchange.is_as_asked
    assert session.take_exchange() is None, "it was taken"


def test_an_exchange_has_the_error_of_the_whole_answer() -> None:
    session = opened(a=3)
    ask(session, a=3)
    refused = ErrorCode.invalid_fetch_session_epoch
    with pytest.raises(BrokerError):
        session.answered(response(error=refused))
    exchange = session.take_exchange()
    assert exchange == FetchExchange(SESSION, 1, (), (), error="INVALID_FETCH_SESSION_EPOCH")


def test_an_exchange_has_the_partitions_with_an_error() -> None:
    session = opened(a=3, b=4)
    ask(session, a=3, b=4)
    session.answered(response(result(A, -1, error=ErrorCode.not_leader_or_follower), result(B, 10)))
    exchange = session.take_exchange()
    assert exchange == FetchExchange(SESSION, 1, (), (), (A, B), failed=(A,))

"""What a follower does with each answer of its leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.response import (
    EpochEndOffset as DivergingEpoch,
)
from kio.schema.fetch.v15.response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kio.schema.offset_for_leader_epoch.v3.response import EpochEndOffset as EpochEnd
from kio.schema.offset_for_leader_epoch.v3.response import (
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from nemesis.reference.log.log import Log
from nemesis.reference.model import BrokerEndPoint, EpochEndOffset, TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.offset_truncation import offset_truncation_state
from nemesis.reference.server.partition_fetch_state import PartitionFetchState
from nemesis.reference.server.replica_fetcher_thread import ReplicaFetcherThread
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import TOPIC_ID, TP, Host, lisr
from tests.reference.log.batches import batch
from tests.reference.virtual_time import run

LEADER = BrokerEndPoint(2, "127.0.0.2", 9092)


class Leader:
    """Answers fetches by a script; when it is out, it never answers again."""

    def __init__(self, *script: Callable[[], Any]) -> None:
        self.script = list(script)
        self.requests: list[tuple[float, Any]] = []
        self.exhausted = asyncio.Event()
        self.closed = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        assert (host, port) == (LEADER.host, LEADER.port)
        self.requests.append((asyncio.get_running_loop().time(), request))
        await asyncio.sleep(0)
        if not self.script:
            self.exhausted.set()
            await asyncio.Event().wait()
        return self.script.pop(0)()

    async def close(self) -> None:
        self.closed = True

    def fetched(self) -> list[tuple[int, int, int]]:
        """(current leader epoch, fetch offset, last fetched epoch) of each request's one partition."""
        return [
            (p.current_leader_epoch, p.fetch_offset, p.last_fetched_epoch)
            for _, request in self.requests
            for topic in request.topics
            for p in topic.partitions
        ]


def answer(
    error: ErrorCode = ErrorCode.none,
    records: bytes = b"",
    high_watermark: int = 0,
    diverging: tuple[int, int] = (-1, -1),
) -> Callable[[], FetchResponse]:
    data = PartitionData(
        partition_index=i32(0),
        error_code=error,
        high_watermark=i64(high_watermark),
        diverging_epoch=DivergingEpoch(epoch=i32(diverging[0]), end_offset=i64(diverging[1])),
        aborted_transactions=None,
        records=records or None,  # type: ignore[arg-type]
    )
    response = FetchResponse(
        throttle_time=i32Timedelta.parse(timedelta()),
        error_code=ErrorCode.none,
        responses=(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(data,)),),
    )
    return lambda: response


def unreachable() -> Any:
    raise NetworkError("no way", definite=True)


def bug() -> Any:
    raise RuntimeError("a bug of ours")


def following(tmp_path: Path, *epochs: int, **properties: Any) -> Host:
    """A follower of broker 2 in epoch 9 whose log has three records of each of the epochs."""
    host = Host(tmp_path, **properties)
    host.partition.make_follower(lisr(leader=2, leader_epoch=9))
    for number, epoch in enumerate(epochs):
        host.partition.append_as_follower(batch(3, base_offset=3 * number, leader_epoch=epoch), 0)
    return host


def state(host: Host) -> PartitionFetchState:
    return PartitionFetchState(host.partition, TOPIC_ID, host.partition.leader_epoch)


def thread_of(host: Host, leader: Leader) -> ReplicaFetcherThread:
    return ReplicaFetcherThread(
        host.config,
        LEADER,
        connection=leader,
        broker_epoch=lambda: 101,
        on_storage_error=lambda *_: None,
    )


async def follow(host: Host, leader: Leader) -> ReplicaFetcherThread:
    """Fetch until the leader's script is played; the connection is closed at the end."""
    return await follow_with(thread_of(host, leader), host, leader)


async def follow_with(
    thread: ReplicaFetcherThread, host: Host, leader: Leader
) -> ReplicaFetcherThread:
    thread.add(state(host))
    task = asyncio.create_task(thread.run())
    waiting = asyncio.create_task(leader.exhausted.wait())
    await asyncio.wait([task, waiting], timeout=60, return_when=asyncio.FIRST_COMPLETED)
    assert not task.done(), task
    for ended in (task, waiting):
        ended.cancel()
    await asyncio.gather(task, waiting, return_exceptions=True)
    assert leader.closed
    return thread


@pytest.mark.parametrize(
    ("epochs", "diverging", "expected"),
    [
        ((0, 2), (2, 4), 4),  # the leader's epoch 2 ends earlier
        ((0, 2), (2, 9), 6),  # ... later than our log
        ((0, 2), (0, 3), 3),  # the leader never had epoch 2
        ((0, 2), (0, 2), 2),
        ((0, 2), (1, 5), 3),  # we never had epoch 1: cut where our epoch 0 ends, ask again
        ((0, 2, 3), (2, 5), 5),
        ((2, 3), (0, 3), 0),  # nothing in common
    ],
)
def test_where_a_diverging_log_is_cut(
    tmp_path: Path, epochs: tuple[int, ...], diverging: tuple[int, int], expected: int
) -> None:
    host = following(tmp_path, *epochs)
    log = host.partition.log
    assert isinstance(log, Log)
    assert offset_truncation_state(log, EpochEndOffset(*diverging)).offset == expected


def test_it_fetches_from_its_end_and_appends(tmp_path: Path) -> None:
    async def scenario() -> None:
        host = following(tmp_path, 0)
        leader = Leader(
            answer(records=batch(2, base_offset=3, leader_epoch=9), high_watermark=4),
            answer(high_watermark=5),
        )
        await follow(host, leader)
        assert leader.fetched() == [(9, 3, 0), (9, 5, 9), (9, 5, 9)]
        assert (host.end_offset, host.high_watermark) == (5, 5)
        request = leader.requests[0][1]
        assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (1, 101)

    run(scenario())


def test_it_truncates_before_it_follows_the_high_watermark(tmp_path: Path) -> None:
    """KAFKA-14704, and KIP-279's second question when the leader's epoch is not known here."""

    async def scenario() -> None:
        host = following(tmp_path, 0, 2)
        leader = Leader(
            answer(high_watermark=6, diverging=(1, 5)),
            answer(records=batch(2, base_offset=3, leader_epoch=1), high_watermark=4),
        )
        await follow(host, leader)
        assert leader.fetched() == [(9, 6, 2), (9, 3, 0), (9, 5, 1)]
        cut = host.trace.of(Kind.TRUNCATE)[0]
        assert (cut["high_watermark_before"], cut["high_watermark"]) == (0, 0)
        assert host.high_watermark == 4

    run(scenario())


def test_a_leader_without_appends_that_became_follower_gives_up_its_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        host = following(tmp_path, 0)
        host.partition.make_leader(lisr(leader_epoch=10))
        host.partition.make_follower(lisr(leader=2, leader_epoch=11))
        leader = Leader(answer(diverging=(0, 3)))
        await follow(host, leader)
        assert leader.fetched() == [(11, 3, 10), (11, 3, 0)]

    run(scenario())


def test_fenced_it_stops_until_it_is_told_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        host = following(tmp_path, 0)
        leader = Leader(answer(ErrorCode.fenced_leader_epoch))
        thread = thread_of(host, leader)
        thread.add(state(host))
        task = asyncio.create_task(thread.run())
        await asyncio.sleep(100)
        assert len(leader.requests) == 1
        assert not thread.topic_partitions
        thread.add(state(host))
        await asyncio.sleep(0.1)
        assert len(leader.requests) == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(scenario())


@pytest.mark.parametrize(
    "trouble",
    [
        answer(ErrorCode.unknown_leader_epoch),
        answer(ErrorCode.not_leader_or_follower),
        answer(ErrorCode.unknown_topic_id),
        answer(records=batch(1, base_offset=2, leader_epoch=9)),
        unreachable,
        bug,
    ],
)
def test_after_trouble_it_waits_and_asks_again(tmp_path: Path, trouble: Callable[[], Any]) -> None:
    async def scenario() -> None:
        host = following(tmp_path, 0)
        leader = Leader(trouble)
        thread = await follow(host, leader)
        (first, _), (second, _) = leader.requests
        assert second - first == pytest.approx(host.config.replica_fetch_backoff_ms / 1000)
        assert leader.fetched() == [(9, 3, 0)] * 2
        assert thread.topic_partitions == {TP}

    run(scenario())


def test_only_changes_of_the_answer_are_traced(tmp_path: Path) -> None:
    async def scenario() -> None:
        host = following(tmp_path, 0)
        refused = answer(ErrorCode.not_leader_or_follower)
        await follow(host, Leader(answer(), refused, refused, unreachable, unreachable, answer()))
        answers = [
            (event["peer"], event["leader_epoch"], event["error"])
            for event in host.trace.of(Kind.FETCH_ANSWERED)
        ]
        assert answers == [
            (2, 9, "NOT_LEADER_OR_FOLLOWER"),
            (2, 9, "NETWORK_EXCEPTION"),
            (2, 9, "NONE"),
        ]

    run(scenario())


@pytest.mark.parametrize(
    "late",
    [
        answer(ErrorCode.fenced_leader_epoch),
        answer(records=batch(1, base_offset=3, leader_epoch=9)),
        answer(diverging=(0, 0)),
    ],
)
def test_an_answer_that_outlives_its_leader_epoch_is_dropped(
    tmp_path: Path, late: Callable[[], Any]
) -> None:
    """KAFKA-7786 for the first; the others would append or truncate on the word of a deposed leader."""

    async def scenario() -> None:
        host = following(tmp_path, 0)
        thread: list[ReplicaFetcherThread] = []

        def after_new_leader_and_isr() -> Any:
            thread[0].remove(TP)
            host.partition.make_follower(lisr(leader=2, leader_epoch=10))
            thread[0].add(state(host))
            return late()

        leader = Leader(after_new_leader_and_isr)
        thread.append(thread_of(host, leader))
        thread[0].add(state(host))
        task = asyncio.create_task(thread[0].run())
        await leader.exhausted.wait()
        assert host.end_offset == 3
        assert leader.fetched() == [(9, 3, 0), (10, 3, 0)]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(scenario())


def ends(
    *answers: tuple[int, int], error: ErrorCode = ErrorCode.none
) -> list[Callable[[], OffsetForLeaderEpochResponse]]:
    """Answers to OffsetForLeaderEpoch: the epoch, and where it ends."""

    def end(epoch: int, offset: int) -> OffsetForLeaderEpochResponse:
        of_partition = EpochEnd(
            error_code=error, partition=i32(0), leader_epoch=i32(epoch), end_offset=i64(offset)
        )
        topic = OffsetForLeaderTopicResult(topic=TopicName("t"), partitions=(of_partition,))
        return OffsetForLeaderEpochResponse(
            throttle_time=i32Timedelta.parse(timedelta()), topics=(topic,)
        )

    return [partial(end, epoch, offset) for epoch, offset in answers]


@pytest.mark.parametrize(
    ("epochs", "answers", "cut_at", "asked"),
    [
        ((0, 2), [(2, 9)], [6], [2]),  # the leader has all of it
        ((0, 2), [(2, 4)], [4], [2]),
        ((0, 2), [(1, 5), (0, 2)], [3, 2], [2, 0]),  # KIP-279: its epoch 1 is not known here
        ((0, 2), [(-1, -1)], [0], [2]),  # it cannot tell: what is committed stays
    ],
)
def test_before_truncation_on_fetch_it_asks_where_to_cut(
    tmp_path: Path,
    epochs: tuple[int, ...],
    answers: list[tuple[int, int]],
    cut_at: list[int],
    asked: list[int],
) -> None:
    async def scenario() -> None:
        host = following(tmp_path, *epochs, inter_broker_protocol_version="2.6")
        leader = Leader(*ends(*answers))
        await follow(host, leader)
        *questions, fetch = [request for _, request in leader.requests]
        assert [q.topics[0].partitions[0].leader_epoch for q in questions] == asked
        assert {q.topics[0].partitions[0].current_leader_epoch for q in questions} == {9}
        assert [cut["offset"] for cut in host.trace.of(Kind.TRUNCATE)] == cut_at
        (partition,) = fetch.topics[0].partitions
        assert (partition.fetch_offset, partition.last_fetched_epoch) == (host.end_offset, -1)

    run(scenario())


def test_a_late_word_on_where_to_cut_is_dropped(tmp_path: Path) -> None:
    """KAFKA-7786: nobody may stop fetching, or cut, on an answer to what was asked in an earlier leader epoch."""

    async def scenario(late: Callable[[], Any], directory: Path) -> None:
        host = following(directory, 0, inter_broker_protocol_version="2.6")
        thread: list[ReplicaFetcherThread] = []

        def after_new_leader_and_isr() -> Any:
            thread[0].remove(TP)
            host.partition.make_follower(lisr(leader=2, leader_epoch=10))
            thread[0].add(state(host))
            return late()

        leader = Leader(after_new_leader_and_isr, *ends((0, 3)))
        thread.append(thread_of(host, leader))
        await follow_with(thread[0], host, leader)
        assert thread[0].topic_partitions == {TP}
        assert host.end_offset == 3

    (cut,), (fenced,) = ends((0, 1)), ends((-1, -1), error=ErrorCode.fenced_leader_epoch)
    run(scenario(cut, tmp_path / "cut"))
    run(scenario(fenced, tmp_path / "fenced"))


def test_records_without_a_known_epoch_are_cut_to_the_high_watermark(tmp_path: Path) -> None:
    async def scenario() -> None:
        host = following(tmp_path, 0)
        log = host.partition.log
        assert log is not None
        log.update_high_watermark(2)
        log.leader_epoch_cache.truncate_from_end(0)
        thread_of(host, Leader()).add(state(host))
        assert host.trace.of(Kind.TRUNCATE)[0]["offset"] == 2

    run(scenario())


def test_a_partition_with_a_bug_does_not_hold_up_the_others(tmp_path: Path) -> None:
    class Broken:
        topic_partition = TopicPartition("t", 1)

        def __init__(self, log: Log) -> None:
            self.log = log

        def append_as_follower(self, *_: object) -> None:
            raise RuntimeError("a bug of ours")

    def both() -> FetchResponse:
        (topic,) = answer(records=batch(1, base_offset=3, leader_epoch=9))().responses
        (good,) = topic.partitions
        topic = replace(topic, partitions=(replace(good, partition_index=i32(1)), good))
        return replace(answer()(), responses=(topic,))

    async def scenario() -> None:
        host = following(tmp_path, 0)
        assert host.partition.log is not None
        broken: Any = Broken(host.partition.log)
        leader = Leader(both)
        thread = thread_of(host, leader)
        thread.add(PartitionFetchState(broken, TOPIC_ID, 9))
        await follow_with(thread, host, leader)
        assert host.end_offset == 4
        assert thread.topic_partitions == {TP, broken.topic_partition}

    run(scenario())

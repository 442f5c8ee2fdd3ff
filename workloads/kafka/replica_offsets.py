"""Where the logs of one broker's replicas start and end, and what their high watermarks are, leader or not.

Any replica answers a consumer's Fetch (KIP-392): it states high watermark and log start offset. Where a log ends, a
replica says only to ListOffsets of a debugging client (replica id −2). It is asked before and after the Fetch: if the
answers are equal, the high watermark belongs to that end.

Every request names the leader epoch, so a replica that is in another one refuses. Versions: Fetch 12, the last one by
topic name, as topics without ids are asked about, too; ListOffsets 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import request as fetch
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.offset_requests import (
    CONSUMER,
    DEBUGGING_CLIENT,
    LATEST,
    Question,
    answers,
    offsets_request,
)
from nemesis.workloads.kafka.timeouts import milliseconds

MOVED: Final = "MOVED"
"""The error of a replica whose log end changed while it was asked."""
_NOT_ANSWERED: Final = "PARTITION_NOT_ANSWERED"
_READ_UNCOMMITTED: Final = i8(0)
_NO_EPOCH: Final = i32(-1)
_NO_OFFSET: Final = i64(-1)
_MAX_BYTES: Final = i32(1024)

Address = tuple[str, int]
TopicPartition = tuple[str, int]
_V = TypeVar("_V")


class ReplicaOffsets(NamedTuple):
    """What a replica answered."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


Answers = dict[TopicPartition, ReplicaOffsets | str]
"""What each replica answered, or the name of the error."""


async def replica_offsets(
    client: KafkaClient,
    address: Address,
    leader_epochs: Mapping[TopicPartition, int],
    *,
    timeout_s: float,
) -> Answers:
    """Ask the broker there for its replicas of these partitions. Raises ``KafkaError`` when a whole request failed."""
    before = await log_ends(client, address, leader_epochs, timeout_s=timeout_s)
    ends = {tp: end for tp, end in before.items() if isinstance(end, int)}
    fetched = await _fetch(client, address, leader_epochs, ends, timeout_s)
    after = await log_ends(client, address, leader_epochs, timeout_s=timeout_s)
    return {tp: _answer(before.get(tp), fetched.get(tp), after.get(tp)) for tp in leader_epochs}


async def high_watermarks(
    client: KafkaClient,
    address: Address,
    leader_epochs: Mapping[TopicPartition, int],
    *,
    timeout_s: float,
) -> dict[TopicPartition, int | str]:
    """Return the high watermark of each of these partitions that the broker there leads, or the name of the error.

    Raises ``KafkaError`` when the whole request failed.
    """
    return await _latest(client, address, leader_epochs, timeout_s, asker=CONSUMER)


async def log_ends(
    client: KafkaClient,
    address: Address,
    leader_epochs: Mapping[TopicPartition, int],
    *,
    timeout_s: float,
) -> dict[TopicPartition, int | str]:
    """Return where the broker's replica of each of these partitions ends, leader or not, or the name of the error.

    Raises ``KafkaError`` when the whole request failed.
    """
    return await _latest(client, address, leader_epochs, timeout_s, asker=DEBUGGING_CLIENT)


async def ask_replicas(
    client: KafkaClient,
    address: Address,
    leader_epochs: Mapping[TopicPartition, int],
    *,
    timeout_s: float,
) -> Answers:
    """Ask as ``replica_offsets`` does; a request that failed is the answer of every replica."""
    try:
        return await replica_offsets(client, address, leader_epochs, timeout_s=timeout_s)
    except KafkaError as error:
        return dict.fromkeys(leader_epochs, error.name)


def _answer(
    before: int | str | None, fetched: tuple[int, int] | str | None, after: int | str | None
) -> ReplicaOffsets | str:
    if isinstance(before, str):
        return before
    if isinstance(fetched, str):
        return fetched
    if isinstance(after, str):
        return after
    if before is None or fetched is None or after is None:
        return _NOT_ANSWERED
    return ReplicaOffsets(*fetched, after) if before == after else MOVED


async def _latest(
    client: KafkaClient,
    address: Address,
    leader_epochs: Mapping[TopicPartition, int],
    timeout_s: float,
    *,
    asker: BrokerId,
) -> dict[TopicPartition, int | str]:
    """Return the latest offset of each log as ListOffsets answers this asker, or the name of the error."""
    questions = {tp: Question(LATEST, epoch) for tp, epoch in leader_epochs.items()}
    response = await client.ask(address, offsets_request(questions, asker=asker), timeout_s)
    return {tp: _or_error(data, int(data.offset)) for tp, data in answers(response)}


async def _fetch(
    client: KafkaClient,
    address: Address,
    leader_epochs: Mapping[TopicPartition, int],
    offsets: Mapping[TopicPartition, int],
    timeout_s: float,
) -> dict[TopicPartition, tuple[int, int] | str]:
    """Return log start offset and high watermark of each log, or the name of the error; no records are read."""
    request = fetch.FetchRequest(
        replica_id=CONSUMER,
        max_wait=milliseconds(0),
        min_bytes=i32(0),
        max_bytes=_MAX_BYTES,
        isolation_level=_READ_UNCOMMITTED,
        session_id=i32(0),
        session_epoch=i32(-1),
        topics=tuple(
            fetch.FetchTopic(
                topic=cast("TopicName", topic),
                partitions=tuple(
                    fetch.FetchPartition(
                        partition=i32(partition),
                        current_leader_epoch=i32(leader_epochs[topic, partition]),
                        fetch_offset=i64(offset),
                        last_fetched_epoch=_NO_EPOCH,
                        log_start_offset=_NO_OFFSET,
                        partition_max_bytes=_MAX_BYTES,
                    )
                    for partition, offset in partitions
                ),
            )
            for topic, partitions in _by_topic(offsets)
        ),
        forgotten_topics_data=(),
        rack_id="",
    )
    response = await client.ask(address, request, timeout_s)
    return {
        (str(topic.topic), int(data.partition_index)): _or_error(
            data, (int(data.log_start_offset), int(data.high_watermark))
        )
        for topic in response.responses
        for data in topic.partitions
    }


def _or_error(data: Any, value: _V) -> _V | str:
    return value if data.error_code is ErrorCode.none else str(data.error_code.name).upper()


def _by_topic(
    values: Mapping[TopicPartition, int],
) -> Iterable[tuple[str, list[tuple[int, int]]]]:
    """Return for each topic its partitions with their values."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), value in sorted(values.items()):
        topics.setdefault(topic, []).append((partition, value))
    return topics.items()

"""Fetch requests for one or several partitions, and the fetch session that a client keeps with a broker (KIP-227).

A full request names every partition. If it asks for a session and the answer has a session id, each further request
names only what differs from the one before it: new partitions, another position or leader epoch, partitions that are
fetched no more. The answer leaves out partitions without records whose high watermark is the one that it stated last.

After every failure the next request is full and ends the old session, as the client cannot know what the broker has
taken in: no answer, an answer about other partitions, INVALID_FETCH_SESSION_EPOCH and all other errors of a whole
request. After FETCH_SESSION_ID_NOT_FOUND the broker has no session that could be ended.

Source: FetchSessionHandler of Kafka 3.9's clients. A request of Kafka 3.9: version 13, by topic id.

Numbers are ``cast``, as in ``client``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import request as fetch
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i32Timedelta, i64

from nemesis.workloads.kafka.errors import BrokerError, ConnectionFailed

SESSION_ERRORS: Final = frozenset({"FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"})
"""Errors of a whole request that say nothing about its partitions: the client asks again with a full request."""
_NO_SESSION: Final = 0
_INITIAL_EPOCH: Final = 0
"""Of a full request that asks for a session."""
_FINAL_EPOCH: Final = -1
"""Of a full request that wants no session."""
_LAST_EPOCH: Final = 2**31 - 1
_CONSUMER: Final = BrokerId(-1)
_READ_UNCOMMITTED: Final = i8(0)
_READ_COMMITTED: Final = i8(1)
_ONE_BYTE: Final = i32(1)

PartitionKey = tuple[UUID, int]
"""Topic id and partition."""


class FetchPosition(NamedTuple):
    """From where one partition is to be read, and in which leader epoch."""

    offset: int
    leader_epoch: int


class AbortedTransaction(NamedTuple):
    """A transaction whose records a consumer of committed records leaves out, up to its marker."""

    producer_id: int
    first_offset: int


class PartitionAnswer(NamedTuple):
    """What a broker answered about a partition; in a session possibly that nothing has changed."""

    records: bytes
    high_watermark: int
    log_start_offset: int
    last_stable_offset: int = -1
    """Below it every transaction is decided; −1 if the answer does not state it."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """Only if committed records were asked for."""


class FetchExchange(NamedTuple):
    """A request and its answer: the partitions that each of them names."""

    session_id: int
    epoch: int
    """Of the request, as its session id."""
    asked: tuple[PartitionKey, ...]
    forgotten: tuple[PartitionKey, ...]
    answered: tuple[PartitionKey, ...] = ()
    failed: tuple[PartitionKey, ...] = ()
    """Those of ``answered`` that have an error."""
    error: str = "NONE"
    """Of the whole answer."""
    throttle_ms: int = 0

    @property
    def is_as_asked(self) -> bool:
        """Whether the answer names the partitions that the request names."""
        return sorted(self.answered) == sorted(self.asked)


class FetchSession:
    """What the client has asked one broker for, and what it was answered."""

    def __init__(self, *, is_kept: bool = True, is_committed: bool = False) -> None:
        """Without ``is_kept`` every request is full and asks for no session.

        With ``is_committed`` requests ask for committed records only (``read_committed``).
        """
        self._isolation_level = _READ_COMMITTED if is_committed else _READ_UNCOMMITTED
        self.is_kept: Final = is_kept
        self._full_epoch = _INITIAL_EPOCH if is_kept else _FINAL_EPOCH
        self._id = _NO_SESSION
        self._epoch = self._full_epoch
        self._asked: dict[PartitionKey, FetchPosition] = {}
        self._unchanged: dict[PartitionKey, PartitionAnswer] = {}
        """By partition the answer of a broker that leaves the partition out: no records, and what it stated last."""
        self._sent: FetchExchange | None = None
        self._exchange: FetchExchange | None = None

    def request(
        self,
        positions: Mapping[PartitionKey, FetchPosition],
        *,
        max_wait: i32Timedelta,
        max_bytes: int,
    ) -> fetch.FetchRequest:
        """Return the request that asks for these partitions; they are read in their order if it is full."""
        known = {} if self._is_full else self._asked
        changed = {
            key: position for key, position in positions.items() if known.get(key) != position
        }
        forgotten = [key for key in known if key not in positions]
        if self._is_full:
            self._unchanged.clear()
        for key in forgotten:
            self._unchanged.pop(key, None)
        self._asked = dict(positions)
        self._sent = FetchExchange(self._id, self._epoch, tuple(changed), tuple(forgotten))
        return fetch.FetchRequest(
            replica_id=_CONSUMER,
            max_wait=max_wait,
            min_bytes=_ONE_BYTE,
            max_bytes=cast("i32", max_bytes),
            isolation_level=self._isolation_level,
            session_id=cast("i32", self._id),
            session_epoch=cast("i32", self._epoch),
            topics=tuple(
                fetch.FetchTopic(
                    topic_id=topic_id,
                    partitions=tuple(
                        _partition(number, changed[topic_id, number], max_bytes)
                        for number in numbers
                    ),
                )
                for topic_id, numbers in _by_topic(changed)
            ),
            forgotten_topics_data=tuple(
                fetch.ForgottenTopic(topic_id=topic_id, partitions=cast("tuple[i32, ...]", numbers))
                for topic_id, numbers in _by_topic(forgotten)
            ),
            rack_id="",
        )

    def answered(self, response: Any) -> dict[PartitionKey, PartitionAnswer | BrokerError]:
        """Take the answer in; return what it says of each partition that was asked for. Raises ``KafkaError``."""
        self._note_exchange(response)
        if response.error_code is not ErrorCode.none:
            if response.error_code is ErrorCode.fetch_session_id_not_found:
                self._id = _NO_SESSION
            self.failed()
            raise BrokerError(response.error_code)
        results = {
            (topic.topic_id, int(result.partition_index)): result
            for topic in response.responses
            for result in topic.partitions
        }
        answers: dict[PartitionKey, PartitionAnswer | BrokerError] = {
            key: self._answer(key, result) for key, result in results.items()
        }
        for key in self._asked.keys() - answers.keys() & self._unchanged.keys():
            answers[key] = self._unchanged[key]
        if answers.keys() != self._asked.keys():
            self.failed()
            raise ConnectionFailed("OTHER_PARTITIONS_ANSWERED", definite=False)
        self._go_on(int(response.session_id))
        return answers

    def take_exchange(self) -> FetchExchange | None:
        """Return the last request if it was answered, with its answer; None if that was returned before."""
        exchange, self._exchange = self._exchange, None
        return exchange

    def _note_exchange(self, response: Any) -> None:
        if self._sent is not None:
            answered = {
                (topic.topic_id, int(result.partition_index)): result.error_code
                for topic in response.responses
                for result in topic.partitions
            }
            self._exchange = self._sent._replace(
                answered=tuple(answered),
                failed=tuple(k for k, error in answered.items() if error is not ErrorCode.none),
                error=response.error_code.name.upper(),
                throttle_ms=round(response.throttle_time.total_seconds() * 1000),
            )

    def failed(self) -> None:
        """Note that the broker may not have taken in the last request: the next one is full."""
        self._epoch = self._full_epoch

    @property
    def _is_full(self) -> bool:
        return self._epoch == self._full_epoch

    def _answer(self, key: PartitionKey, result: Any) -> PartitionAnswer | BrokerError:
        if result.error_code is not ErrorCode.none:
            self._unchanged.pop(key, None)
            return BrokerError(result.error_code)
        answer = PartitionAnswer(
            result.records or b"",
            int(result.high_watermark),
            int(result.log_start_offset),
            int(result.last_stable_offset),
            tuple(
                AbortedTransaction(int(aborted.producer_id), int(aborted.first_offset))
                for aborted in result.aborted_transactions or ()
            ),
        )
        self._unchanged[key] = answer._replace(records=b"", aborted=())
        return answer

    @property
    def is_committed(self) -> bool:
        """Whether its requests ask for committed records only."""
        return self._isolation_level == _READ_COMMITTED

    def _go_on(self, session_id: int) -> None:
        """Go on in the session of the answer; a broker without room for the session, or that ends it, has none."""
        if session_id == _NO_SESSION:
            self._id, self._epoch = _NO_SESSION, self._full_epoch
        elif self._is_full or self._epoch == _LAST_EPOCH:
            self._id, self._epoch = session_id, 1
        else:
            self._epoch += 1


def _by_topic(keys: Iterable[PartitionKey]) -> Iterable[tuple[UUID, tuple[int, ...]]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in keys:
        topics.setdefault(topic_id, []).append(partition)
    return ((topic_id, tuple(partitions)) for topic_id, partitions in topics.items())


def _partition(number: int, position: FetchPosition, max_bytes: int) -> fetch.FetchPartition:
    return fetch.FetchPartition(
        partition=cast("i32", number),
        current_leader_epoch=cast("i32", position.leader_epoch),
        fetch_offset=cast("i64", position.offset),
        partition_max_bytes=cast("i32", max_bytes),
    )

"""What a broker remembers between two fetches of one client: what it asks for, and what it was told last (KIP-227).

A client that has a session sends only what it asks differently, and is told only what is new: records, errors, a high
watermark or a log start offset that moved. A session's epoch grows with each fetch, so that of two fetches, or of two
answers, that cross, one is refused.

What a client may not have taken in is told again, even if it stays as it was: after an error, after a divergence, and
when the partition is asked for in another leader epoch. (Kafka's own follower may wait for the next change then.)
The cache holds a limited number of sessions; who may replace whom is KIP-227's rule.

Source: kafka.server.FetchSession of Kafka 3.9, which also keeps the leader epoch that a partition was asked in
(KAFKA-9338): every fetch is fenced, not only the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random  # noqa: TID251  # the type; the instance is an argument
from typing import Final
from uuid import UUID

from nemesis.reference.model import FetchPartitionRequest, FetchPartitionResult, TopicPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
"""Of a full fetch that asks for a session."""
FINAL_EPOCH: Final = -1
"""Of a full fetch that wants none, or that ends the one it names."""
EVICTION_S: Final = 120.0
"""For so long a session is safe from others (MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS)."""
_MAX_INT: Final = 2**31 - 1

ForgottenPartitions = Collection[tuple[UUID | str, int]]
"""By topic id, or by name in versions that have no ids."""


def next_epoch(epoch: int) -> int:
    """The epoch of the fetch after; 0 and −1 have meanings of their own."""
    return 1 if epoch >= _MAX_INT else epoch + 1


def unnamed_topic(topic_id: UUID | None) -> str:
    """Stands for a topic of which only the id is known; no topic can have such a name."""
    return f"<{topic_id}>"


def is_unnamed(topic_partition: TopicPartition) -> bool:
    """Whether only the topic's id was known."""
    return topic_partition.topic.startswith("<")


class FetchSession:
    """One client's partitions, in the order in which they are read, and what it knows of each."""

    def __init__(
        self,
        session_id: int,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        now: float,
    ) -> None:
        """``is_privileged``: a follower's, not a consumer's."""
        self.id = session_id
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.created = self.last_used = now
        self.epoch = next_epoch(INITIAL_EPOCH)
        """Of the fetch that is expected next."""
        self.requests: Mapping[TopicPartition, FetchPartitionRequest] = {}
        """Replaced, never changed: a fetch that waits holds on to what it was asked."""
        self._reported: dict[TopicPartition, tuple[int, int]] = {}
        """High watermark and log start offset that the client knows; an absent partition is reported in any case.

        The last stable offset moves with one of them only.
        """
        self._unnamed: list[TopicPartition] = []

    def update(
        self,
        requests: Mapping[TopicPartition, FetchPartitionRequest],
        forgotten: ForgottenPartitions,
        topic_name: Callable[[UUID], str | None],
    ) -> None:
        """Take in what a fetch asks differently; ``topic_name`` says what an id is called by now."""
        named = self._named(topic_name) if self._unnamed else {}
        if not (requests or forgotten or named):
            return
        updated = dict(self.requests)
        for was, request in named.items():
            del updated[was]
            updated[request.topic_partition] = request
            self._reported.pop(request.topic_partition, None)
        for key, request in requests.items():
            before = updated.get(key)
            updated[key] = self.remembered(request)
            if before is None or _log_of(before) != _log_of(request):
                self._reported.pop(key, None)
        if forgotten:
            for key, request in list(updated.items()):
                if (request.topic_id or key.topic, key.partition) in forgotten:
                    del updated[key]
                    self._reported.pop(key, None)
        if named or forgotten or len(updated) != len(self.requests):
            self._unnamed = [key for key in updated if is_unnamed(key)]
        self.requests = updated

    def remembered(self, request: FetchPartitionRequest) -> FetchPartitionRequest:
        """What is kept of a partition as it was asked for: all of it, its leader epoch too (KAFKA-9338)."""
        return request

    def changes(
        self, results: Mapping[TopicPartition, FetchPartitionResult]
    ) -> dict[TopicPartition, FetchPartitionResult]:
        """Return the results that differ from what the client knows, and note that it knows them.

        A partition that had records goes to the end of the order: a response may be full before the last partitions.
        """
        changes: dict[TopicPartition, FetchPartitionResult] = {}
        reported = self._reported
        for key, result in results.items():
            known = (result.high_watermark, result.log_start_offset)
            if result.is_urgent:
                reported.pop(key, None)
            elif reported.get(key) != known:
                reported[key] = known
            elif not result.records:
                continue
            changes[key] = result
        served = [key for key, result in changes.items() if result.records and key in self.requests]
        if served and len(served) < len(self.requests):
            waiting = dict(self.requests)
            self.requests = waiting
            for key in served:
                waiting[key] = waiting.pop(key)
        return changes

    def _named(
        self, topic_name: Callable[[UUID], str | None]
    ) -> dict[TopicPartition, FetchPartitionRequest]:
        """By the key that each has, those partitions whose topic has a name now."""
        named = {}
        for key in self._unnamed:
            request = self.requests[key]
            name = None if request.topic_id is None else topic_name(request.topic_id)
            if name is not None:
                named[key] = request._replace(topic_partition=TopicPartition(name, key.partition))
        return named


def _log_of(request: FetchPartitionRequest) -> tuple[UUID | None, int]:
    """Of which log offsets are reported: a topic that is created again has another one under its name."""
    return request.topic_id, request.current_leader_epoch


class FetchSessionCache:
    """At most ``max_entries`` sessions, by their ids."""

    def __init__(self, max_entries: int, *, rng: Random) -> None:
        self._max_entries = max_entries
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}
        """The one that was used longest ago comes first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def touch(self, session: FetchSession, now: float) -> None:
        """Note that the session is used."""
        session.last_used = now
        self._sessions[session.id] = self._sessions.pop(session.id)

    def remove(self, session_id: int) -> None:
        """Forget the session, if there is one."""
        self._sessions.pop(session_id, None)

    def maybe_create(
        self, *, is_privileged: bool, uses_topic_ids: bool, size: int, now: float
    ) -> FetchSession | None:
        """A new session for ``size`` partitions; None if there is no room for it."""
        if len(self._sessions) >= self._max_entries:
            evicted = self._evictable(is_privileged=is_privileged, size=size, now=now)
            if evicted is None:
                return None
            self.remove(evicted.id)
        session = FetchSession(
            self._new_id(), is_privileged=is_privileged, uses_topic_ids=uses_topic_ids, now=now
        )
        self._sessions[session.id] = session
        return session

    def _evictable(self, *, is_privileged: bool, size: int, now: float) -> FetchSession | None:
        """Whose place a new session may take: one that nobody has used for long, else one that is worth less.

        Followers are worth more than consumers, many partitions more than few. Consumers take the place of those only
        that are no longer young; followers that of any consumer.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used > EVICTION_S:
            return oldest
        candidates = [
            session
            for session in self._sessions.values()
            if (is_privileged and not session.is_privileged)
            or session.last_used - session.created > EVICTION_S
        ]
        least = min(candidates, key=_worth, default=None)
        if least is None or (is_privileged, size, 0) < _worth(least):
            return None
        return least

    def _new_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, _MAX_INT)
            if session_id not in self._sessions:
                return session_id


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.is_privileged, len(session.requests), session.id

"""Which partitions a fetch is about, and what of the results goes into its answer: the fetch's context (KIP-227).

* ``SessionlessFetchContext``   all that it names, all results: no session is wanted, or it is ended
* ``FullFetchContext``          the same, and a session begins, if there is room
* ``IncrementalFetchContext``   all that the session has, with what it names differently; news only
* ``SessionErrorContext``       nothing: the session is not known, or another fetch was expected of it

Source: kafka.server.FetchManager and FetchContext of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random  # noqa: TID251  # the type; the instance is an argument
from types import MappingProxyType
from typing import NamedTuple, Protocol
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.server.delayed_fetch import FetchRequests, FetchResults
from nemesis.reference.server.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessionCache,
    ForgottenPartitions,
    next_epoch,
)


class FetchMetadata(NamedTuple):
    """Which fetch of which session a request is."""

    session_id: int
    epoch: int

    @property
    def is_full(self) -> bool:
        """Whether it names all of its partitions."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)


class FetchAnswer(NamedTuple):
    """An answer's error, its session (0 is none), and the partitions that it tells of."""

    error: ErrorCode
    session_id: int
    results: FetchResults


class FetchContext(Protocol):
    """One fetch; ``requests`` stays as it is while the fetch waits."""

    @property
    def requests(self) -> FetchRequests: ...
    def answer(self, results: FetchResults) -> FetchAnswer:
        """What to say of the results, one for each of ``requests``; asked once."""


class SessionErrorContext:
    """Refused as a whole."""

    requests: FetchRequests = MappingProxyType({})

    def __init__(self, error: ErrorCode) -> None:
        self._error = error

    def answer(self, results: FetchResults) -> FetchAnswer:
        del results
        return FetchAnswer(self._error, NO_SESSION, {})


class SessionlessFetchContext:
    """Names all, is told all."""

    def __init__(self, requests: FetchRequests) -> None:
        self.requests = requests

    def answer(self, results: FetchResults) -> FetchAnswer:
        return FetchAnswer(ErrorCode.none, NO_SESSION, results)


class FullFetchContext:
    """Names all, is told all, and has a session from now on."""

    def __init__(
        self, requests: FetchRequests, begin: Callable[[FetchRequests], FetchSession | None]
    ) -> None:
        self.requests = requests
        self._begin = begin

    def answer(self, results: FetchResults) -> FetchAnswer:
        session = self._begin(self.requests)
        if session is None:
            return FetchAnswer(ErrorCode.none, NO_SESSION, results)
        session.changes(results)
        return FetchAnswer(ErrorCode.none, session.id, results)


class IncrementalFetchContext:
    """The next fetch of a session."""

    def __init__(self, session: FetchSession) -> None:
        self.requests = session.requests
        self._session = session
        self._next_epoch = session.epoch

    def answer(self, results: FetchResults) -> FetchAnswer:
        session = self._session
        if session.epoch != self._next_epoch:  # its client did not wait for this answer
            return FetchAnswer(ErrorCode.invalid_fetch_session_epoch, session.id, {})
        return FetchAnswer(ErrorCode.none, session.id, session.changes(results))


class FetchManager:
    """Finds the context of each fetch. Needs a running loop."""

    def __init__(
        self, max_sessions: int, *, rng: Random, topic_name: Callable[[UUID], str | None]
    ) -> None:
        """``topic_name`` asks the metadata cache."""
        self.cache = FetchSessionCache(max_sessions, rng=rng)
        self._topic_name = topic_name

    def new_context(
        self,
        metadata: FetchMetadata,
        requests: FetchRequests,
        forgotten: ForgottenPartitions,
        *,
        is_follower: bool,
        uses_topic_ids: bool,
    ) -> FetchContext:
        """The context of one fetch; a full one ends the session that it names."""
        if metadata.is_full:
            self.cache.remove(metadata.session_id)
            if metadata.epoch == FINAL_EPOCH:
                return SessionlessFetchContext(requests)
            return FullFetchContext(
                requests,
                lambda asked: self._begin(
                    asked, is_follower=is_follower, uses_topic_ids=uses_topic_ids
                ),
            )
        session = self.cache.get(metadata.session_id)
        if session is None:
            return SessionErrorContext(ErrorCode.fetch_session_id_not_found)
        if session.epoch != metadata.epoch:
            return SessionErrorContext(ErrorCode.invalid_fetch_session_epoch)
        if session.uses_topic_ids != uses_topic_ids:
            return SessionErrorContext(ErrorCode.fetch_session_topic_id_error)
        session.update(requests, forgotten, self._topic_name)
        if not session.requests:
            self.cache.remove(session.id)
            return SessionlessFetchContext({})
        self.cache.touch(session, asyncio.get_running_loop().time())
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetchContext(session)

    def _begin(
        self, requests: FetchRequests, *, is_follower: bool, uses_topic_ids: bool
    ) -> FetchSession | None:
        session = self.cache.maybe_create(
            is_privileged=is_follower,
            uses_topic_ids=uses_topic_ids,
            size=len(requests),
            now=asyncio.get_running_loop().time(),
        )
        if session is not None:
            session.update(requests, (), self._topic_name)
        return session

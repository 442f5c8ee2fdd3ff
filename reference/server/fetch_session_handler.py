"""The client's side of a fetch session: what its leader has been told, hence what it need not be told again (KIP-227).

A session begins with a full fetch, goes on with incremental ones, and is given up after any trouble: an answer that did
not come, one that names another session, one that refuses it. Then the next fetch is full again, and ends the session
that the leader may still have.

Source: org.apache.kafka.clients.FetchSessionHandler of Kafka 3.9. Only for followers: topics are known by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.request import FetchPartition
from kio.schema.fetch.v15.response import FetchResponse

from nemesis.reference.server.fetch_session import INITIAL_EPOCH, NO_SESSION, next_epoch

FetchKey = tuple[int, int]
"""Topic id and partition. The id as a number, because UUIDs are hashed and compared in Python."""


class FetchRequestData(NamedTuple):
    """What one fetch has to say."""

    session_id: int
    epoch: int
    to_send: Mapping[FetchKey, FetchPartition]
    to_forget: list[FetchKey]

    @property
    def is_full(self) -> bool:
        return self.epoch == INITIAL_EPOCH


class FetchSessionHandler:
    """One session with one leader, and the next after it; one fetch at a time."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._session_partitions: Mapping[FetchKey, FetchPartition] = {}

    def build(self, partitions: Mapping[FetchKey, FetchPartition]) -> FetchRequestData:
        """The next fetch, which is about all of these; one that is asked as before is the same object as before."""
        former, self._session_partitions = self._session_partitions, partitions
        if self._epoch == INITIAL_EPOCH:
            return FetchRequestData(self._session_id, INITIAL_EPOCH, partitions, [])
        return FetchRequestData(
            self._session_id,
            self._epoch,
            {key: asked for key, asked in partitions.items() if former.get(key) is not asked},
            [key for key in former if key not in partitions],
        )

    def handle_response(self, response: FetchResponse) -> bool:
        """Take in an answer; False when it refuses the session, and says nothing of any partition."""
        if response.error_code is ErrorCode.fetch_session_id_not_found:
            self._begin_anew(NO_SESSION)
        elif response.error_code is not ErrorCode.none:
            self._begin_anew(self._session_id)
        elif response.session_id == NO_SESSION:  # no room, or it has been ended
            self._begin_anew(NO_SESSION)
        elif self._epoch != INITIAL_EPOCH and response.session_id != self._session_id:
            self._begin_anew(self._session_id)
        else:
            self._session_id = response.session_id
            self._epoch = next_epoch(self._epoch)
        return response.error_code is ErrorCode.none

    def handle_error(self) -> None:
        """No answer came, or none that can be read: what the leader has taken in is not known."""
        self._begin_anew(self._session_id)

    def _begin_anew(self, session_id: int) -> None:
        """The next fetch is full, and ends the session ``session_id``."""
        self._session_id = session_id
        self._epoch = INITIAL_EPOCH

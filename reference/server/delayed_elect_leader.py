"""An ElectLeaders request whose elections are made: it waits until this broker's own metadata shows the new leaders.

What is not seen in time is answered with REQUEST_TIMED_OUT, although the election stands. Source:
kafka.server.DelayedElectLeader.
"""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from nemesis.reference.model import ApiError, TopicPartition
from nemesis.reference.server.metadata_cache import MetadataCache

_DONE = ApiError(ErrorCode.none)
_TIMED_OUT = ApiError(ErrorCode.request_timed_out, "The new leader is not known here yet.")


class DelayedElectLeader:
    """Complete when each of ``expected`` (partition → new leader) has been seen; implements ``DelayedOperation``."""

    def __init__(
        self, expected: Mapping[TopicPartition, int], metadata_cache: MetadataCache
    ) -> None:
        self._waiting = dict(expected)
        self._metadata_cache = metadata_cache
        self._elected: list[TopicPartition] = []

    @property
    def is_complete(self) -> bool:
        return not self._waiting

    def try_complete(self, key: TopicPartition) -> bool:
        state = self._metadata_cache.partition_info(key)
        if state is not None and self._waiting.get(key) == state.leader:
            del self._waiting[key]
            self._elected.append(key)
        return self.is_complete

    def results(self) -> dict[TopicPartition, ApiError]:
        return {
            **dict.fromkeys(self._elected, _DONE),
            **dict.fromkeys(self._waiting, _TIMED_OUT),
        }

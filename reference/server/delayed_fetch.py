"""A long-polling fetch: complete as soon as an answer is worth sending.

That is: enough bytes below what the reader may see, or anything that the sender must hear of at once (a
partition that moved, a newer epoch, a log cut below the fetch offset).

What was found at first is kept, and only a partition that made progress is read again: whatever changes what a fetch
may see of a partition is announced (``LocalReplica``), so the rest is as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from nemesis.reference.model import (
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    TopicPartition,
)

FetchRequests = Mapping[TopicPartition, FetchPartitionRequest]
FetchResults = dict[TopicPartition, FetchPartitionResult]
"""By the requests' keys, in their order."""


class FetchReader(Protocol):
    """Reads that no longer count as a follower's progress; ``RecordFetches`` does them."""

    def read_again(
        self, params: FetchParams, request: FetchPartitionRequest
    ) -> FetchPartitionResult:
        """Read one partition as if it were asked for alone."""

    def read_all_again(self, params: FetchParams, requests: FetchRequests) -> FetchResults:
        """Read all of them, which share ``max_bytes``."""


def is_worth_sending(results: Iterable[FetchPartitionResult], params: FetchParams) -> bool:
    """Whether an answer is sent at once instead of waiting for more."""
    size = 0
    for result in results:
        if result.is_urgent:
            return True
        size += len(result.records)
    return size >= params.min_bytes


class DelayedFetch:
    """Waits on behalf of one fetch request; holds what each partition has for it if it were asked for alone."""

    def __init__(
        self,
        params: FetchParams,
        requests: FetchRequests,
        results: FetchResults,
        *,
        reader: FetchReader,
    ) -> None:
        """``results`` are those of the first read, and not worth sending."""
        self._params = params
        self._requests = requests
        self._results = results
        self._reader = reader
        self._size = sum(len(result.records) for result in results.values())

    def try_complete(self, key: TopicPartition) -> bool:
        result = self._reader.read_again(self._params, self._requests[key])
        self._size += len(result.records) - len(self._results[key].records)
        self._results[key] = result
        return self._size >= self._params.min_bytes or result.is_urgent

    def results(self) -> FetchResults:
        """What reading all of them would find now. Records of one partition leave less room for the next."""
        with_records = [result for result in self._results.values() if result.records]
        if len(with_records) > 1 or self._size > self._params.max_bytes:
            return self._reader.read_all_again(self._params, self._requests)
        return self._results

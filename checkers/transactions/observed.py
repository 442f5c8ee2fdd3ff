"""What a run has shown to the properties of transactions, as numbers: what a ``valid`` rests on.

A run in which no producer was fenced, nothing was aborted, or no reader came by an open transaction breaks none of the
properties. These numbers show such a run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate

from nemesis.checkers.transactions.produced import (
    Operation,
    Partition,
    Produced,
    Transaction,
    partition_of,
)
from nemesis.checkers.transactions.reads import (
    first_offsets,
    of_transactions,
    polls_by_partition,
    position,
    stays,
)


class ReadOver:
    """The offsets of each partition that some poll of committed records has read over."""

    def __init__(self, known: Produced) -> None:
        self._polls = polls_by_partition(known)
        self._positions: dict[Partition, list[int]] = {}
        self._reached: dict[Partition, list[int]] = {}
        """By position, the largest offset that a poll from there or from below has reached."""
        for partition, polls in self._polls.items():
            self._positions[partition] = [position(poll) for poll in polls]
            ends = (poll.event.last_offset or 0 for poll in polls)
            self._reached[partition] = [*accumulate(ends, max)]

    def count(self, transaction: Transaction) -> int:
        """Return how many acknowledged records of the transaction, without keys, the polls have read over since."""
        return sum(stays(send) and self._has(send) for send in transaction.sends)

    def _has(self, send: Operation) -> bool:
        partition, offset = partition_of(send.event), send.event.offset or 0
        index = bisect_right(self._positions.get(partition, ()), offset)
        if not index or self._reached[partition][index - 1] < offset:
            return False
        # Those from the nearest positions come first: one of them nearly always has the offset.
        return any(
            (poll.event.last_offset or 0) >= offset and poll.ended >= send.began
            for poll in reversed(self._polls[partition][:index])
        )


def committed_records(known: Produced, read_over: ReadOver) -> int:
    """Return how many records of committed transactions readers have read over, given to them or not."""
    shown = {transaction.number for _, _, _, transaction in of_transactions(known)}
    return sum(
        read_over.count(transaction)
        for transaction in known.transactions.values()
        if transaction.is_committed
        or (transaction.may_be_committed and transaction.number in shown)
    )


def uncommitted_records(known: Produced, read_over: ReadOver) -> int:
    """Return how many records of transactions that are certainly not committed readers have read over."""
    return sum(
        read_over.count(transaction)
        for transaction in known.transactions.values()
        if transaction.is_aborted or not transaction.may_be_committed
    )


def polls_while_open(known: Produced) -> int:
    """Return how many polls began and ended while a transaction of their partition was certainly open."""
    spans = {
        partition: sorted((sent.ended, transaction.end_began) for _, sent, transaction in listed)
        for partition, listed in first_offsets(known).items()
    }
    last_ends = {
        partition: [*accumulate((end for _, end in listed), max)]
        for partition, listed in spans.items()
    }
    count = 0
    for poll in known.polls:
        partition = partition_of(poll.event)
        index = bisect_left(spans.get(partition, ()), (poll.began, 0))
        count += index > 0 and last_ends[partition][index - 1] > poll.ended
    return count


def fencing(known: Produced) -> dict[str, float]:
    """Return how many producers fenced a former one, and how many requests came in an epoch that was fenced by then."""
    answered: dict[tuple[str | None, int | None], list[tuple[int, int]]] = defaultdict(list)
    """By transactional id and producer id, when each epoch was answered."""
    fences = 0
    for transactional_id, inits in known.inits.items():
        for init in sorted(inits, key=lambda item: item.ended):
            epochs = answered[transactional_id, init.event.producer_id]
            fences += bool(epochs) and init.invoked[1].producer_epoch is None
            epochs.append((init.ended, init.event.producer_epoch or 0))
    highest = {
        key: [*accumulate((epoch for _, epoch in epochs), max)] for key, epochs in answered.items()
    }
    late = 0
    for request in (*known.requests, *known.refused):
        event = request.invoked[1]
        key = event.transactional_id, event.producer_id
        index = bisect_left(answered.get(key, ()), (request.began, -1))
        late += index > 0 and highest[key][index - 1] > (event.producer_epoch or 0)
    return {"fenced_producers": float(fences), "requests_of_fenced_producers": float(late)}

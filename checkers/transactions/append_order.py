"""Whether the records of transactions stand in a log in an order that time permits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.transactions.produced import Operation, Partition, Produced, partition_of


def appended_before_it_was_sent(name: str, known: Produced) -> Iterator[Finding]:
    """Find records that stand before one which was acknowledged before they were sent."""
    for placed in _by_partition(known).values():
        latest: Operation | None = None
        for send in placed:
            if latest is not None and latest.began > send.ended:
                yield _finding(name, latest, send)
            if latest is None or latest.began < send.began:
                latest = send


def appended(known: Produced) -> int:
    """Return how many acknowledged records of transactions there are."""
    return sum(map(len, _by_partition(known).values()))


def _by_partition(known: Produced) -> dict[Partition, list[Operation]]:
    """The acknowledged records of each partition, by offset."""
    placed: dict[Partition, list[Operation]] = defaultdict(list)
    for transaction in known.transactions.values():
        for send in transaction.sends:
            if send.is_ok and (send.event.offset or 0) >= 0:
                placed[partition_of(send.event)].append(send)
    for sends in placed.values():
        sends.sort(key=lambda send: send.event.offset or 0)
    return placed


def _finding(name: str, earlier: Operation, later: Operation) -> Finding:
    """``earlier`` by offset, which was sent after the other one had been acknowledged."""
    first, last = earlier.event, later.event
    tp = tp_name(first.topic, first.partition)
    sentence = (
        f"In {tp}, value {first.value} of transaction {first.transaction} is at offset {first.offset}, before value "
        f"{last.value} of transaction {last.transaction} at offset {last.offset}. It was sent only after the "
        "acknowledgement of the other value."
    )
    return finding(name, tp, sentence, later.row, earlier.invoked[0], earlier.row)

"""Why the events contradict the promise: markers of transactions, and transactions without one."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def marker_epoch_grows(_: Case) -> str:
    return (
        "A coordinator with a later epoch has already ended a transaction of this producer here. From then on the "
        "broker must refuse markers of earlier coordinators, because they may end a newer transaction (KAFKA-9144)."
    )


def torn_markers(_: Case) -> str:
    return (
        "A transaction is complete when each of its partitions has a marker. Without the marker, consumers that read "
        "committed records wait at this transaction, or the next marker of the producer decides about its records."
    )


def markers_kept(_: Case) -> str:
    return (
        "Compaction removes a marker only after the records of its transaction. Without the marker, the transaction is "
        "open again for a broker that reads its log again, and for a follower. The producer's next marker ends it, and "
        "that one may have the other outcome."
    )


def hanging_transaction(case: Case) -> str:
    rule = (
        "A coordinator aborts a transaction that is open for longer than its time-out. Until then, consumers with "
        "read_committed cannot read beyond the first offset of the transaction."
    )
    if case.is_undecided:
        return f"{rule} It is not known whether this transaction would have ended in time."
    return rule

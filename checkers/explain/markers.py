"""Why the events contradict the promise: markers of transactions, and transactions without one."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def marker_epoch_grows(_: Case) -> str:
    return (
        "A coordinator of a later epoch has ended a transaction of this producer here. A broker must refuse the "
        "markers of its predecessors from then on: they would end transactions that they know nothing of (KAFKA-9144)."
    )


def torn_markers(_: Case) -> str:
    return (
        "A transaction is complete when each of its partitions has a marker. Without one, consumers of committed "
        "records wait at this transaction, or the next marker of its producer decides about its records."
    )


def hanging_transaction(case: Case) -> str:
    rule = (
        "A coordinator aborts a transaction that is open for longer than its time-out. Until the marker is written, "
        "consumers of committed records read nothing behind its first offset."
    )
    if case.is_undecided:
        return f"{rule} Whether this transaction would have ended is not known."
    return rule

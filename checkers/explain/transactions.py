"""Why both cannot be: what producers asked of their transactions, and what readers of committed records were given."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case

_ATOMIC = (
    "The end of a transaction is one decision, which the markers in all its partitions repeat."
)


def aborted_read(case: Case) -> str:
    if any(event.f == "abort-transaction" for event in case.events):
        return f"{_ATOMIC} A broker names aborted transactions in its answer, so that readers leave out their records."
    return "Only a commit that the producer asked for, and that was not refused, makes the record a committed one."


def read_beyond_lso(case: Case) -> str:  # noqa: ARG001
    return (
        "The transaction is not decided before its producer asks for the end. The last stable offset is not beyond its "
        "first record, and a reader of committed records is given only what is below."
    )


def torn_transaction(case: Case) -> str:  # noqa: ARG001
    return (
        f"{_ATOMIC} The reader went past the record, so its broker took the transaction for decided there, and left "
        "the record out as if it had been aborted."
    )


def fenced_producer(case: Case) -> str:  # noqa: ARG001
    return (
        "Before the newer producer is answered, the coordinator has its epoch in the log, and an open transaction of "
        "the former one is aborted in that epoch. So coordinator and leaders refuse the former epoch."
    )

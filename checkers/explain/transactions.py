"""Why both cannot be: what producers asked of their transactions, and what readers of committed records were given."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case

_ATOMIC = "A transaction ends with one decision for all its partitions: commit or abort."


def aborted_read(case: Case) -> str:
    if any(event.f == "abort-transaction" for event in case.events):
        return (
            f"{_ATOMIC} Brokers name aborted transactions to consumers, which skip their records."
        )
    return "The record is committed only if the producer requested a commit and the request was not refused."


def read_beyond_lso(case: Case) -> str:  # noqa: ARG001
    return (
        "The transaction was still open, because its producer had not requested its end. Consumers with "
        "read_committed may not read beyond the first record of an open transaction (the last stable offset)."
    )


def torn_transaction(case: Case) -> str:  # noqa: ARG001
    return (
        f"{_ATOMIC} Here the consumer passed the record without receiving it, as if the transaction had been aborted "
        "in this partition."
    )


def fenced_producer(case: Case) -> str:  # noqa: ARG001
    return (
        "Before the coordinator answers the new producer, it stores the new epoch and aborts an open transaction of "
        "the former producer. So the coordinator and all leaders must refuse the former epoch."
    )


def producer_epoch_kept(case: Case) -> str:  # noqa: ARG001
    return (
        "Before the producer ends a transaction, only two events raise its epoch: an InitProducerId for its "
        "transactional id, and a coordinator that aborts the transaction after its time-out. Neither can have occurred."
    )


def transactions_possible(case: Case) -> str:  # noqa: ARG001
    return (
        "The InitProducerId of a new producer aborts the transaction that another producer left open. Without faults "
        "the coordinator has a leader, and the new producer can write and commit."
    )


def last_stable_offset_at_rest(case: Case) -> str:  # noqa: ARG001
    return (
        "No producer has a transaction any more, and coordinators abort what is open for too long. So each transaction "
        "has its markers, and nothing holds the last stable offset."
    )


def exactly_once(case: Case) -> str:  # noqa: ARG001
    return (
        "A transaction decides its records and its position together, and the next producer begins where the last "
        "committed transaction ended. So a committed position stands for exactly what was derived up to it."
    )


def transaction_order(case: Case) -> str:
    if any(event.derived_from is not None for event in case.events):
        return (
            "Consumers with read_committed receive a record only after its transaction is decided. A producer reads "
            "its input before it requests its own commit. So no transaction is derived from one that is decided later."
        )
    return (
        "An acknowledged record is on all in-sync replicas, so a record that is sent afterwards gets a larger offset, "
        "no matter which broker leads the partition."
    )

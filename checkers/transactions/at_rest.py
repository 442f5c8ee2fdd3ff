"""Transactions are possible again once the faults have ended.

**transactions-possible**: when no fault is in force any more, a new producer of each transactional id can begin, write
a record and commit. At the end of a run the harness does so, again and again until it succeeds or the time for the
final reads ends. An id whose last producer has committed nothing is judged if this took longer without faults than a
cluster may take to recover (``recovery_bound``). Smallest break: the last producer of a transactional id is refused a
second after all faults.

Why this is the promise: a new producer's InitProducerId aborts the transaction that another one left open (KIP-98). A
cluster that refuses all transactions breaks no other property of transactions, because nothing is committed.

What a correct cluster does and is not convicted for: an attempt may fail and be repeated. ``unknown`` is a
transactional id that had too little time, and what the machine may have delayed. Where a power cut struck the last
replica of a partition of ``__transaction_state``, leaders may know later epochs than the coordinator: allowed.
Source: KIP-98; TransactionCoordinator.handleInitProducerId.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.administered import CLIENT_KINDS, Administered
from nemesis.checkers.breaks import transactions_at_rest as breaks
from nemesis.checkers.explain import transactions as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness import recovery_bound, unexplained
from nemesis.checkers.transactions.produced import (
    ADD_PARTITIONS,
    COMMIT,
    INIT,
    SEND,
    Operation,
    operations_of,
)
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.transactions import LAST_PRODUCER

_END: Final = "end"
_MS: Final = 1_000_000


class TransactionsAtRest(Administered):
    operations = frozenset({INIT, ADD_PARTITIONS, SEND, COMMIT})
    kinds = frozenset({*CLIENT_KINDS, *unexplained.KINDS, Kind.FAULT_INVOKE})
    columns = ("f", "op", "node", "error", "transactional_id", "detail", *unexplained.COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (TRANSACTIONS_POSSIBLE,)

    def judge(self, rows: list[Row]) -> Results:
        by_id: dict[str, list[Operation]] = defaultdict(list)
        for operation in operations_of(rows, self.operations):
            if _is_of_last_producer(operation.event):
                by_id[operation.event.transactional_id or ""].append(operation)
        run = [item for item in rows if item[1].kind in unexplained.KINDS]
        findings = [
            item
            for transactional_id, operations in sorted(by_id.items())
            if not any(item.is_ok and item.event.f == COMMIT for item in operations)
            for item in _refused(transactional_id, operations, run)
        ]
        permitted = losses.Losses(rows)
        findings = [
            permitted.allow(item, losses.TRANSACTIONS_TOPIC, unclean=False) for item in findings
        ]
        return conclude(TRANSACTIONS_POSSIBLE, checked=len(by_id), findings=findings)


def _is_of_last_producer(event: Event) -> bool:
    return event.process.startswith(LAST_PRODUCER) and event.transactional_id is not None


def _refused(key: str, operations: Sequence[Operation], run: Sequence[Row]) -> Iterator[Finding]:
    """Say of a transactional id whose last producer committed nothing whether it had to."""
    last = operations[-1]
    windows = unexplained.without_faults(run, _END)
    start = max(windows[-1][0] if windows else 0, operations[0].began)
    end = unexplained.measured_until(run, (last.completed or last.invoked)[1].time)
    lasted_ms = max(end - start, 0) // _MS
    bound_ms = recovery_bound.bound_ms(run)
    doubt: str | None
    if bound_ms is None:
        doubt = "how long a cluster may take to recover is not recorded"
    elif lasted_ms <= bound_ms:
        doubt = f"a cluster may take {bound_ms:,} ms"
    else:
        doubt = unexplained.excuse(run, start, end, lasted_ms - bound_ms)
    answer = last.event.error or "no answer"
    sentence = (
        f"The last producer of {key} committed no transaction in {lasted_ms:,} ms without a fault; its last request, "
        f"{last.event.f}, ended with {answer}"
    )
    sentence += f"; {doubt}." if doubt else f". A cluster may take {bound_ms:,} ms to recover."
    verdict = Verdict.UNKNOWN if doubt else Verdict.INVALID
    yield finding(
        TRANSACTIONS_POSSIBLE.name, key, sentence, last.invoked[0], last.row, verdict=verdict
    )


TRANSACTIONS_POSSIBLE: Final = Property(
    name="transactions-possible",
    promise="Without faults, a new producer of each transactional id can write and commit.",
    unit="transactional ids",
    unknown="No last transaction was tried, or nemesis was too late or had too little time to decide.",
    source="KIP-98; TransactionCoordinator.handleInitProducerId.",
    check=TransactionsAtRest,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.HARNESS, EventSource.FAULTS}),
    workloads=frozenset({"transactions"}),
    recorded_since=10,
    reason=explain.transactions_possible,
    breaks=breaks.TRANSACTIONS_POSSIBLE,
)

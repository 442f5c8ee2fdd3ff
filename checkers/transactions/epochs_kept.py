"""Producers keep their epoch until another one asks for it, or their transaction has timed out.

**producer-epoch-kept**: a coordinator that has given a producer its epoch refuses it as fenced only with a cause
(KIP-98). In detail, a refusal of AddPartitionsToTxn, of EndTxn, or of an InitProducerId by which the producer goes on
in its next epoch (KIP-360), with PRODUCER_FENCED or INVALID_PRODUCER_EPOCH, is a violation if all of this holds:

* the broker that refuses has answered the producer's InitProducerId with this epoch, or has accepted a later request of
  the epoch. What a broker knows of a transactional id never goes back: it has answered what is committed in its log;
* every request of the InitProducerId was answered: one that arrives late takes the next epoch and fences its sender;
* nothing else can have raised the epoch: every other InitProducerId of the transactional id had its answer before this
  one was sent, and none follows before the refusal;
* no transaction of this epoch has been open for as long as its time-out, as far as the broker that refuses knows: a
  coordinator that aborts it raises the epoch. An InitProducerId is judged only if no transaction is open: it aborts
  one, and raises the epoch for that.

Smallest breaks: a producer is answered its epoch, and its first AddPartitionsToTxn is refused as fenced; the same with
the commit after an accepted AddPartitionsToTxn; the same with an InitProducerId that names the epoch.

What a correct cluster does and is not convicted for: another producer of the transactional id, one that was killed or
had no answer included, fences this one; a transaction that was open for too long is aborted and its producer fenced; a
former coordinator that does not know of its successor refuses a producer of a later epoch, or aborts by time-out a
transaction that its successor has ended: it raises the epoch before it writes the abort, which then fails. Where a
fault moved a wall clock, by which coordinators measure time-outs, producers with an open transaction are not judged.
Where ``__transaction_state`` may lose records, findings are reported and allowed.

Limits: what partition leaders and group coordinators refuse is not judged, nor are epochs that an end has raised
(``transaction.version`` 2). A producer that goes on after a request in doubt (``renews_in_doubt: false``) may be
convicted with Kafka 3.9, where a late AddPartitionsToTxn opens the next transaction (KAFKA-17754). An operator who
aborts a transaction by WriteTxnMarkers is not in the history.
Source: KIP-98, KIP-360; TransactionCoordinator.handleInitProducerId, abortTimedOutTransactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.administered import CLIENT_KINDS, Administered
from nemesis.checkers.breaks import epochs_kept as breaks
from nemesis.checkers.explain import transactions as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.transactions.produced import (
    ABORT,
    ADD_PARTITIONS,
    COMMIT,
    INIT,
    NEVER,
    Operation,
    operations_of,
)
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_FENCED: Final = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
_REQUESTS: Final = frozenset({ADD_PARTITIONS, COMMIT, ABORT})
_CLOCK_FAULTS: Final = frozenset({"clock-skew"})
"""Faults that move the wall clocks of brokers."""
_MS: Final = 1_000_000
_TIMER_MS: Final = 20
"""By how much a timer may be early: timers of Kafka count in ticks."""

_Producer = tuple[str | None, int | None, int | None]
"""A transactional id, a producer id and an epoch."""


@dataclass(slots=True)
class Epoch:
    """What one producer did in one epoch."""

    given: Operation | None = None
    """The InitProducerId that was answered with it."""
    begun: list[Row] = field(default_factory=list)
    """Its transactions."""
    requests: list[Operation] = field(default_factory=list)

    def has_known(self, node: int | None, before: int) -> bool:
        """Whether a broker had shown before that it knows this epoch."""
        given = () if self.given is None else (self.given,)
        return any(
            item.is_ok and item.event.node == node and item.ended < before
            for item in (*given, *self.requests)
        )

    def _accepts_after(self, ended: int, node: int | None, time: int) -> bool:
        """Whether a broker accepted a request between these times: it knew then what had ended before."""
        return any(
            item.is_ok and item.event.node == node and item.began > ended and item.ended < time
            for item in self.requests
        )

    def judged(self) -> int:
        """How many requests were accepted by a broker that had shown before that it knows this epoch."""
        if self.given is None or self.given.event.count != 0:
            return 0
        return sum(
            item.is_ok and self.has_known(item.event.node, item.began) for item in self.requests
        )

    def oldest_open(self, node: int | None, time: int) -> int | None:
        """When the oldest transaction began that a broker may have held open at that time; None without one.

        A former coordinator does not know of an end that its successor has acknowledged.
        """
        ended = {
            item.event.transaction
            for item in self.requests
            if item.is_ok
            and item.event.f in (COMMIT, ABORT)
            and item.ended < time
            and (item.event.node == node or self._accepts_after(item.ended, node, time))
        }
        begins = (event.time for _, event in self.begun if event.transaction not in ended)
        return min((begin for begin in begins if begin < time), default=None)


class EpochsKept(Administered):
    operations = frozenset({INIT, *_REQUESTS})
    kinds = frozenset({*CLIENT_KINDS, *losses.KINDS, Kind.TRANSACTION_BEGUN})
    columns = (
        *("f", "op", "node", "error", "transactional_id", "transaction", "producer_id"),
        *("producer_epoch", "count", "timeout_ms", *losses.COLUMNS),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (PRODUCER_EPOCH_KEPT,)

    def judge(self, rows: list[Row]) -> Results:
        inits: dict[str, list[Operation]] = defaultdict(list)
        epochs: dict[_Producer, Epoch] = defaultdict(Epoch)
        for operation in operations_of(rows, self.operations):
            event = operation.event
            if event.transactional_id is None:
                continue
            if event.f == INIT:
                inits[event.transactional_id].append(operation)
                if operation.is_ok:
                    epochs[_producer(event)].given = operation
                elif event.producer_epoch is not None:
                    epochs[_producer(event)].requests.append(operation)
            else:
                epochs[_producer(event)].requests.append(operation)
        for row in rows:
            if row[1].kind == Kind.TRANSACTION_BEGUN:
                epochs[_producer(row[1])].begun.append(row)
        moved = min(
            (event.time for _, event in rows if event.fault in _CLOCK_FAULTS), default=NEVER
        )
        findings = [
            item
            for (transactional_id, *_), epoch in epochs.items()
            for item in _needless(epoch, inits[transactional_id or ""], moved)
        ]
        checked = sum(epoch.judged() for epoch in epochs.values()) + len(findings)
        findings = losses.Losses(rows).allow_all(findings, losses.TRANSACTIONS_TOPIC)
        return conclude(PRODUCER_EPOCH_KEPT, checked=checked, findings=findings)


def _producer(event: Event) -> _Producer:
    return event.transactional_id, event.producer_id, event.producer_epoch


def _needless(epoch: Epoch, inits: Sequence[Operation], moved: int) -> Iterator[Finding]:
    """Find the first refusal of an epoch that nothing can have raised; ``moved``: when a wall clock first was."""
    given = epoch.given
    if given is None or given.event.count != 0:
        return
    for refused in epoch.requests:
        if not (refused.is_failed and refused.event.error in _FENCED):
            continue
        if (
            epoch.has_known(refused.event.node, refused.began)
            and not any(_may_raise(item, given, refused) for item in inits)
            and not _may_time_out(epoch, given, refused, moved)
        ):
            yield _finding(given, refused)
            return


def _may_raise(item: Operation, given: Operation, refused: Operation) -> bool:
    """Whether another InitProducerId may have taken effect between the one that gave the epoch and the refusal."""
    if item is given or item is refused or item.began > refused.ended:
        return False
    is_answered = item.is_failed or (item.is_ok and item.event.count == 0)
    return not (is_answered and item.ended < given.began)


def _may_time_out(epoch: Epoch, given: Operation, refused: Operation, moved: int) -> bool:
    """Whether a transaction may have been open for as long as its time-out."""
    since = epoch.oldest_open(refused.event.node, refused.ended)
    if since is None:
        return False
    if refused.event.f == INIT:
        return True
    timeout_ms = given.invoked[1].timeout_ms
    if timeout_ms is None or moved < refused.ended:
        return True
    return refused.ended - since >= (timeout_ms - _TIMER_MS) * _MS


def _finding(given: Operation, refused: Operation) -> Finding:
    event = refused.event
    key = event.transactional_id or ""
    sentence = (
        f"Broker {event.node} refused the {event.f} of {event.process} as producer of {key} in epoch "
        f"{event.producer_epoch} with {event.error}, though no other producer had requested the next epoch, and no "
        "transaction had timed out."
    )
    return finding(
        PRODUCER_EPOCH_KEPT.name, key, sentence, given.row, refused.invoked[0], refused.row
    )


PRODUCER_EPOCH_KEPT: Final = Property(
    name="producer-epoch-kept",
    promise="A coordinator fences a producer only for another one of its transactional id, or after a time-out.",
    unit="answers of coordinators that knew the epoch of a producer",
    unknown="No coordinator accepted a request of a producer after it had given or accepted its epoch.",
    source="KIP-98, KIP-360; TransactionCoordinator.handleInitProducerId, abortTimedOutTransactions.",
    check=EpochsKept,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.FAULTS}),
    workloads=frozenset({"transactions"}),
    recorded_since=10,
    reason=explain.producer_epoch_kept,
    breaks=breaks.PRODUCER_EPOCH_KEPT,
)

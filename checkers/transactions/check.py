"""Transactions of producers: what readers of committed records are given, and who is fenced.

A transaction is what one producer writes between two ends: its client numbers it, and knows its records, their offsets
and how it asked for the end. A reader of committed records (``isolation.level=read_committed``) leaves out what its
broker's answer names as aborted.

* **aborted-read**: no reader of committed records is given a record of a transaction that is certainly not committed:
  its abort was acknowledged, its commit certainly failed, its producer never asked for a commit, or it asked for it
  only when a newer producer had been answered its epoch, and has no acknowledgement.
  Smallest breaks: a value is sent in a transaction, its abort is acknowledged, and a poll of committed records returns
  it; the same without any end; with a commit that certainly failed; with a commit that is not answered, and was sent
  after a newer producer got its epoch.
* **read-beyond-lso**: no reader of committed records is given a record at or above the first record of an open
  transaction of the partition. (a) A record of a transaction whose producer asks for the commit only afterwards; (b) a
  record behind one of a transaction, acknowledged before the poll, whose producer asks for an end only after the poll
  has returned, and has it acknowledged. A record below the log start that the answer states does not count: it was
  deleted, and a replica that comes later does not know of the transaction.
  Smallest breaks: (a) a poll of committed records returns a value, and then its commit is asked for; (b) a value is
  acknowledged at offset 5 in a transaction, a poll of committed records returns offset 6, and then the transaction is
  aborted.
* **torn-transaction**: a reader of committed records that reads over a record of a committed transaction is given it. A
  transaction is committed if its commit was acknowledged, or if a reader was given one of its records and its commit
  was asked for. A poll reads over the offsets from its position to the end of the last batch of its answer.
  Smallest breaks: a value is acknowledged at offset 0 in a transaction that commits, and a poll of committed records
  from 0 to 2 does not return it; a commit has no certain outcome, and a poll returns one of two records only.
* **fenced-producer**: once a producer of a transactional id has been answered its epoch, nothing is accepted that a
  producer of an earlier epoch sends afterwards: no record, no partition or offset for its transaction, no end, and no
  InitProducerId by which it goes on (KIP-360). So no two producers are answered one epoch, and no later one an
  earlier epoch. A producer id replaces the former one of its transactional id in the same way, as after 32,767 epochs.
  Smallest breaks: a producer gets epoch 0, another one epoch 1, and then a record of the first is acknowledged; the
  same with a partition that is added, with a commit, and with an InitProducerId of epoch 0; two producers get epoch 0;
  a producer has id 7, the next one gets id 8, and then a partition is added for id 7.
* **exactly-once**: the promise of consume, transform, produce; ``derivations`` states it.
* **transaction-order**: cycles of dependencies that Kafka does not permit; ``dependencies`` states it.

Only what clients know counts, so the properties judge Kafka, too. An acknowledged end proves that the transaction was
open until its producer asked for this end: had the coordinator decided before, because of a time-out or of the next
producer, it would have refused the producer's epoch. With ``transaction.version`` 2 only a commit proves that: there
the coordinator takes an abort for a repeated one when it has aborted the transaction itself (KIP-890).
A former coordinator of Kafka answers from memory, about an earlier transaction of the same epoch. So an abort proves
nothing if its producer had aborted before in this epoch, and the broker had not answered the ``add-partitions`` of this
transaction. For the same reason, an ``add-partitions`` that is accepted too late is ``unknown`` if an earlier
transaction of the epoch had partitions, and the broker had not answered the InitProducerId that fences the producer.

What a correct cluster does and is not convicted for: a commit whose outcome is unknown takes effect, or does not, or
later; a transaction without an end is aborted by the next producer of its id, or by its time-out; a request that was
sent before the next producer was answered is accepted after it; a reader of all records is given aborted and open ones;
compaction and retention remove records (those with keys are not judged by ``torn-transaction``); a producer writes to a
topic that was deleted and created again, and knows the former one (``topics_of_sends``).

Where brokers may elect unclean leaders, or when the last replica of a partition has lost what it had not synced
(``losses``), the end of a transaction may be lost, and with it the epoch that a leader knows. Findings about records of
that partition are then reported and allowed, those of ``exactly-once`` and ``transaction-order`` after a loss in any.
What only coordinators decide is allowed for a loss in ``__transaction_state``, which never elects unclean leaders.

Limits: a producer id without an InitProducerId is not compared with others. That transactions end at all is another
promise. Records without a transaction are judged by ``read-beyond-lso`` only.
A producer that goes on after a request in doubt may be convicted with Kafka 3.9, and rightly so (KAFKA-17754): the
scenario's ``renews_in_doubt`` avoids that.
Source: KIP-98, KIP-360, KIP-890; UnifiedLog, TransactionCoordinator, and the Fetcher of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.administered import CLIENT_KINDS
from nemesis.checkers.breaks import transactions_read as breaks
from nemesis.checkers.explain import transactions as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Result
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.losses import TRANSACTIONS_TOPIC, Losses
from nemesis.checkers.transactions import observed
from nemesis.checkers.transactions.append_order import appended, appended_before_it_was_sent
from nemesis.checkers.transactions.dependencies import Dependencies
from nemesis.checkers.transactions.derivations import (
    Given,
    derived_again,
    duplicates,
    given_to_readers,
    missing,
    passed_inputs,
)
from nemesis.checkers.transactions.fencing import (
    accepted_by_coordinators,
    accepted_by_leaders,
    epochs_given_again,
)
from nemesis.checkers.transactions.produced import (
    COLUMNS,
    FUNCTIONS,
    POLL,
    SEND,
    Produced,
    produced,
)
from nemesis.checkers.transactions.reads import (
    of_transactions,
    torn,
    uncommitted,
    undecided,
)
from nemesis.checkers.transactions.topics_of_sends import settle_topics
from nemesis.history.events import READ_COMMITTED, Kind
from nemesis.history.sources import EventSource


class Transactions(EventListCheck):
    kinds = frozenset({*CLIENT_KINDS, *losses.KINDS, Kind.REPLICA_STOPPED})
    columns = (*COLUMNS, *losses.COLUMNS, "step")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (
            *(ABORTED_READ, READ_BEYOND_LSO, TORN_TRANSACTION, FENCED_PRODUCER, EXACTLY_ONCE),
            TRANSACTION_ORDER,
        )

    def reduce(self, segment: Segment) -> list[Row]:
        """Leave out the polls and sends that have nothing to do with transactions: they are many."""
        is_other_poll = segment.is_word("f", {POLL}) & ~segment.is_word(
            "isolation", {READ_COMMITTED}
        )
        is_other_send = segment.is_word("f", {SEND}) & (segment.numbers("transaction") < 0)
        is_request = segment.is_word("f", FUNCTIONS) & ~is_other_poll & ~is_other_send
        wanted = ~segment.is_kind(*CLIENT_KINDS) | is_request
        return super().reduce(segment.where(wanted)) if wanted.any() else []

    def judge(self, rows: list[Row]) -> Results:
        known, permitted = produced(rows), Losses(rows)
        unsettled = settle_topics(known, rows)
        read, given = sum(1 for _ in of_transactions(known)), given_to_readers(known)
        read_over = observed.ReadOver(known)
        passed, open_at = (
            observed.committed_records(known, read_over),
            observed.polls_while_open(known),
        )
        figures = _figures(known, observed.uncommitted_records(known, read_over))
        aborted = _of_records(uncommitted(ABORTED_READ.name, known), permitted)
        beyond = _of_records(undecided(READ_BEYOND_LSO.name, known), permitted)
        parts = _of_records(torn(TORN_TRANSACTION.name, known), permitted)
        fenced = _fencing(known, permitted)
        return [
            _result(ABORTED_READ, read, aborted, figures),
            _result(READ_BEYOND_LSO, read, beyond, {"polls_while_open": float(open_at)}),
            _result(TORN_TRANSACTION, passed, parts),
            _result(FENCED_PRODUCER, len(known.requests), fenced, observed.fencing(known)),
            _derived(known, given, permitted),
            _ordered(known, given, permitted, unsettled),
        ]


def _of_records(findings: Iterable[Finding], permitted: Losses) -> Iterator[Finding]:
    """Findings about what a partition holds, and which transactions are decided."""
    for item in findings:
        yield permitted.allow(item, item.key, TRANSACTIONS_TOPIC)


def _fencing(known: Produced, permitted: Losses) -> Iterator[Finding]:
    name = FENCED_PRODUCER.name
    coordinated = (*epochs_given_again(name, known), *accepted_by_coordinators(name, known))
    for item in coordinated:
        yield permitted.allow(item, TRANSACTIONS_TOPIC, unclean=False)
    for item, about in accepted_by_leaders(name, known):
        yield permitted.allow(item, about, TRANSACTIONS_TOPIC)


def _ordered(known: Produced, given: Given, permitted: Losses, unsettled: int) -> Result:
    """Judge the order of transactions, and count the cycles that Kafka permits.

    ``unsettled``: how many acknowledged records are not judged, because their topic is unknown.
    """
    dependencies = Dependencies(known, given)
    name = TRANSACTION_ORDER.name
    findings = [*dependencies.impossible(name), *appended_before_it_was_sent(name, known)]
    findings = permitted.allow_all(findings)
    numbers = {"dependencies_by_reads": float(len(dependencies.reads)), **dependencies.permitted()}
    if unsettled:
        numbers["sends_of_unknown_topic_incarnation"] = float(unsettled)
    return _result(TRANSACTION_ORDER, appended(known), findings, numbers)


def _derived(known: Produced, given: Given, permitted: Losses) -> Result:
    """Judge what was derived from the input of groups."""
    inputs = passed_inputs(known, given)
    name = EXACTLY_ONCE.name
    findings = [*duplicates(name, known, given), *missing(name, known, given, inputs)]
    findings = [permitted.allow(item, is_timed=False) for item in findings]
    again = {"inputs_derived_again": float(derived_again(known, inputs))}
    return _result(EXACTLY_ONCE, len(inputs), findings, again)


def _result(
    decided: Property,
    checked: int,
    findings: Iterable[Finding],
    numbers: dict[str, float] | None = None,
) -> Result:
    return conclude(decided, checked=checked, findings=[*findings], numbers=numbers)


def _figures(known: Produced, passed: int) -> dict[str, float]:
    """How many transactions there were, how many ended, and how many uncommitted records readers have passed."""
    transactions = known.transactions.values()
    return {
        "transactions": float(len(transactions)),
        "committed": float(sum(item.is_committed for item in transactions)),
        "aborted": float(sum(item.is_aborted for item in transactions)),
        "uncommitted_records_read_over": float(passed),
    }


_SOURCES: Final = frozenset({EventSource.CLIENTS})
_WORKLOADS: Final = frozenset({"transactions"})

ABORTED_READ: Final = Property(
    name="aborted-read",
    promise="A reader of committed records is given no record of a transaction that is not committed.",
    unit="records of transactions that were read as committed",
    unknown="No reader of committed records was given a record of a transaction.",
    source="CompletedFetch.containsAbortMarker, UnifiedLog.collectAbortedTransactions; KIP-98.",
    check=Transactions,
    decided_from=_SOURCES,
    recorded_since=10,
    workloads=_WORKLOADS,
    reason=explain.aborted_read,
    breaks=breaks.ABORTED_READ,
)

READ_BEYOND_LSO: Final = Property(
    name="read-beyond-lso",
    promise="A reader of committed records is given nothing from the first record of an open transaction on.",
    unit="records of transactions that were read as committed",
    unknown="No reader of committed records was given a record of a transaction.",
    source="UnifiedLog.fetchLastStableOffsetMetadata; KIP-98.",
    check=Transactions,
    decided_from=_SOURCES,
    recorded_since=10,
    workloads=_WORKLOADS,
    reason=explain.read_beyond_lso,
    breaks=breaks.READ_BEYOND_LSO,
)

TORN_TRANSACTION: Final = Property(
    name="torn-transaction",
    promise="A reader of committed records that reads past a committed transaction is given all its records.",
    unit="records of committed transactions that were read over",
    unknown="No reader of committed records has read over an acknowledged record of a committed transaction.",
    source="TransactionMarkerChannelManager, KafkaApis.handleWriteTxnMarkersRequest; KIP-98.",
    check=Transactions,
    decided_from=_SOURCES,
    recorded_since=10,
    workloads=_WORKLOADS,
    reason=explain.torn_transaction,
    breaks=breaks.TORN_TRANSACTION,
)

FENCED_PRODUCER: Final = Property(
    name="fenced-producer",
    promise="Nothing of a producer is accepted once a newer producer of its transactional id has its higher epoch.",
    unit="accepted requests of transactional producers",
    unknown="No request of a transactional producer was accepted.",
    source="TransactionCoordinator.handleInitProducerId, ProducerAppendInfo.checkProducerEpoch; KIP-98, KIP-360.",
    check=Transactions,
    decided_from=_SOURCES,
    recorded_since=10,
    workloads=_WORKLOADS,
    reason=explain.fenced_producer,
    breaks=breaks.FENCED_PRODUCER,
)

EXACTLY_ONCE: Final = Property(
    name="exactly-once",
    promise="What is derived from an input record and committed with its position is committed exactly once.",
    unit="input records that a committed position has passed",
    unknown="No group committed a position behind an input record, or whether the output has a record is not known.",
    source="KIP-98, KIP-129, KIP-447; GroupMetadata.completePendingTxnOffsetCommit.",
    check=Transactions,
    decided_from=_SOURCES,
    recorded_since=10,
    workloads=_WORKLOADS,
    reason=explain.exactly_once,
    breaks=breaks.EXACTLY_ONCE,
)

TRANSACTION_ORDER: Final = Property(
    name="transaction-order",
    promise="Transactions have an order that fits time, what they read, and the appends that Kafka orders.",
    unit="acknowledged records of transactions",
    unknown="No record of a transaction was acknowledged.",
    source="KIP-98; allowed-error-types of jepsen.tests.kafka.",
    check=Transactions,
    decided_from=_SOURCES,
    recorded_since=10,
    workloads=_WORKLOADS,
    reason=explain.transaction_order,
    breaks=breaks.TRANSACTION_ORDER,
)

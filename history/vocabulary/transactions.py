"""Transactional producers of our own: what they ask of the transaction coordinator, and what belongs together.

Writer: the harness, for the transactional producers of the workload ``transactions`` (processes ``transactor-1``,
``transformer-0``, ``final-transaction-0``). Operations have the columns that ``clients`` describes, and ``send`` and
``init-producer-id`` are declared there. Each operation except ``fetch-stable-offset`` is repeated until it is answered.
``node`` is the broker that the producer last held for the coordinator.

A transaction has one number (``transaction``). It begins with ``transaction-begun``, which is the producer's own
knowledge. The coordinator learns of it from ``add-partitions``; if ``transaction-version`` is 2, from the first write.
It ends with ``commit-transaction`` or ``abort-transaction``; one without an end was left by a producer that was
killed, fenced or in doubt.
"""

from __future__ import annotations

from typing import Final

from nemesis.history.events import Kind, Milliseconds, Records, Word
from nemesis.history.vocabulary.clients import OperationView, PartitionOperationView
from nemesis.history.vocabulary.declaring import View, answers, declares, invokes

LAST_PRODUCER: Final = "final-transaction-"
"""Processes whose name begins so are the last producers of the transactional ids.

Each writes and commits until a commit is acknowledged.
"""


LAST_READER: Final = "committed"
"""The process that reads committed records at the end of a run."""


@invokes("transaction-version")
class TransactionVersion(OperationView, frozen=True, kw_only=True):
    """A client asks for the cluster's ``transaction.version`` (ApiVersions)."""


@answers("transaction-version")
class TransactionVersionOk(TransactionVersion, frozen=True, kw_only=True):
    """Some broker has answered."""

    count: int
    """The version; 0: the cluster does not have the feature."""


@declares(Kind.TRANSACTION_BEGUN)
class TransactionBegun(View, frozen=True, kw_only=True):
    """A producer begins a transaction."""

    transactional_id: Word
    transaction: int
    producer_id: int
    producer_epoch: int


class TransactionOperationView(OperationView, frozen=True, kw_only=True):
    """An operation of a producer on its transaction."""

    transactional_id: Word
    transaction: int
    producer_id: int
    producer_epoch: int


@invokes("add-partitions")
@answers("add-partitions")
class AddPartitions(TransactionOperationView, frozen=True, kw_only=True):
    """A producer adds the partitions of a transaction, before it writes to them (AddPartitionsToTxn)."""

    count: int
    """The number of partitions."""


@invokes("commit-transaction", "abort-transaction")
@answers("commit-transaction", "abort-transaction")
class EndTransaction(TransactionOperationView, frozen=True, kw_only=True):
    """A producer ends its transaction (EndTxn).

    ``ok``: the decision stands. ``fail``: no request of this operation has decided, or will.
    """


@invokes("send-offset")
@answers("send-offset")
class SendOffset(TransactionOperationView, frozen=True, kw_only=True):
    """A producer commits an offset in its transaction, as a group's member (AddOffsetsToTxn, TxnOffsetCommit)."""

    group: Word
    member: Word | None = None
    generation: int | None = None
    instance: Word | None = None
    topic: Word
    partition: int
    topic_id: Word | None = None
    offset: Records
    value: int


@invokes("fetch-stable-offset")
class FetchStableOffset(OperationView, frozen=True, kw_only=True):
    """A member reads a committed offset; it is refused while a transaction has an offset pending (OffsetFetch)."""

    group: Word
    topic: Word
    partition: int
    topic_id: Word | None = None


@answers("fetch-stable-offset")
class FetchStableOffsetOk(FetchStableOffset, frozen=True, kw_only=True):
    """The group coordinator has answered."""

    offset: Records
    """The committed offset; −1: none."""
    value: int
    """The number of the commit; −1: none."""


@invokes("open-transaction")
class OpenTransaction(PartitionOperationView, frozen=True, kw_only=True):
    """The last reader of committed records asks what holds the last stable offset (DescribeProducers)."""

    last_stable_offset: Records
    high_watermark: Records


@answers("open-transaction")
class OpenTransactionOk(OpenTransaction, frozen=True, kw_only=True):
    """The leader has answered; without a producer: no transaction is open."""

    producer_id: int | None = None
    producer_epoch: int | None = None
    first_offset: Records | None = None
    wall_ms: Milliseconds | None = None
    """When the producer wrote last."""

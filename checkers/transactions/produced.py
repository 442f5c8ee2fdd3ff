"""Transactions, their records and their ends, and the producers of transactional ids, as their clients know them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import READ_COMMITTED, Event, Kind

SEND, POLL, INIT = "send", "poll", "init-producer-id"
COMMIT, ABORT = "commit-transaction", "abort-transaction"
ADD_PARTITIONS, SEND_OFFSET = "add-partitions", "send-offset"
VERSION = "transaction-version"
STABLE_OFFSET = "fetch-stable-offset"
ACCEPTED_BY_BROKERS: Final = (ADD_PARTITIONS, SEND, SEND_OFFSET, COMMIT, ABORT)
"""What a producer needs its epoch for."""
FUNCTIONS: Final = frozenset({*ACCEPTED_BY_BROKERS, INIT, POLL, VERSION, STABLE_OFFSET})
COLUMNS: Final = (
    *("f", "op", "topic", "topic_id", "partition", "node", "offset", "value", "key", "error"),
    *("offsets", "values", "last_offset", "isolation", "transactional_id", "transaction"),
    *("producer_id", "producer_epoch", "count", "derived_from", "group", "log_start_offset"),
)
_REPEATS_ABORTS: Final = 2
"""The ``transaction.version`` from which on an abort of what the coordinator has aborted itself is acknowledged."""
NEVER: Final = 2**63 - 1
Partition = tuple[str | None, int | None, str | None]
Producer = tuple[str | None, int | None, int | None]
"""A transactional id, a producer id and an epoch."""


@dataclass(slots=True)
class Operation:
    """An operation of a client: its invocation, and its completion if the history has one."""

    invoked: Row
    completed: Row | None = None

    @property
    def event(self) -> Event:
        """What is known last."""
        return (self.completed or self.invoked)[1]

    @property
    def began(self) -> int:
        return self.invoked[1].time

    @property
    def ended(self) -> int:
        return NEVER if self.completed is None else self.completed[1].time

    @property
    def is_ok(self) -> bool:
        return self.completed is not None and self.completed[1].kind == Kind.OK

    @property
    def is_failed(self) -> bool:
        """Whether it certainly had no effect."""
        return self.completed is not None and self.completed[1].kind == Kind.FAIL

    @property
    def row(self) -> int:
        """The row of what is known last."""
        return (self.completed or self.invoked)[0]


@dataclass(slots=True)
class Transaction:
    """What one transaction wrote, and how it ended, if its producer has ended it."""

    number: int
    sends: list[Operation] = field(default_factory=list)
    offsets: list[Operation] = field(default_factory=list)
    """Offsets of groups that it commits."""
    commit: Operation | None = None
    abort: Operation | None = None
    added: Operation | None = None
    """The request that added its partitions."""
    fence: Operation | None = None
    """The InitProducerId that had fenced its producer before its commit, which was not acknowledged, was requested."""

    @property
    def is_committed(self) -> bool:
        """Whether its commit was acknowledged."""
        return self.commit is not None and self.commit.is_ok

    @property
    def is_aborted(self) -> bool:
        """Whether its abort was acknowledged."""
        return self.abort is not None and self.abort.is_ok

    @property
    def is_acknowledged(self) -> bool:
        """Whether an end of it was acknowledged."""
        return self.is_committed or self.is_aborted

    @property
    def end_began(self) -> int:
        """When its producer first asked for an end."""
        ends = [end.began for end in (self.commit, self.abort) if end is not None]
        return min(ends, default=NEVER)

    @property
    def may_be_committed(self) -> bool:
        return self.commit is not None and not self.commit.is_failed and self.fence is None


@dataclass(slots=True)
class Produced:
    """What all producers did, and what readers of committed records were given."""

    transactions: dict[int, Transaction] = field(default_factory=dict)
    sends: dict[int, Operation] = field(default_factory=dict)
    """By the value of the record."""
    polls: list[Operation] = field(default_factory=list)
    """Of committed records, those with an answer."""
    inits: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    """By transactional id, those that succeeded."""
    requests: list[Operation] = field(default_factory=list)
    """Those that succeeded and need an epoch."""
    refused: list[Operation] = field(default_factory=list)
    """Those that need an epoch and have no success: errors, and what was not answered."""
    aborts: dict[Producer, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    additions: dict[Producer, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    """Requests that add partitions to a transaction."""
    stable_offsets: list[Operation] = field(default_factory=list)
    """Committed offsets of groups as producers read them."""
    version: int = 0
    """The ``transaction.version`` of the cluster."""

    def was_open(self, transaction: Transaction) -> bool:
        """Whether a transaction was certainly open until its producer asked for an end."""
        if transaction.is_committed:
            return True
        return (
            self.version < _REPEATS_ABORTS
            and transaction.is_aborted
            and not self._may_repeat_abort(transaction)
        )

    def _may_repeat_abort(self, transaction: Transaction) -> bool:
        """Whether the abort may be the answer of a former coordinator, which means an earlier transaction.

        Kafka acknowledges the abort of an aborted transaction from memory. A broker that had answered a request of this
        transaction knows it, so its abort has to be written.
        """
        abort, added = transaction.abort, transaction.added
        if abort is None:
            return False
        is_known = added is not None and added.is_ok and added.event.node == abort.event.node
        earlier = self.aborts[producer_of(abort.event)]
        return not is_known and any(
            item.began < abort.began and not item.is_failed for item in earlier
        )

    def may_repeat_addition(self, request: Operation) -> bool:
        """Whether the addition of partitions may be the answer of a former coordinator, about an earlier transaction.

        Kafka acknowledges from memory that it adds what an open transaction has. A broker that had answered the
        InitProducerId which fences the producer knows better.
        """
        event = request.event
        if event.f != ADD_PARTITIONS:
            return False
        inits = self.inits.get(event.transactional_id or "", ())
        is_known = event.node is not None and any(
            init.event.node == event.node for init in fences(request, inits)
        )
        earlier = self.additions[producer_of(event)]
        return not is_known and any(
            item.began < request.began and not item.is_failed for item in earlier
        )


def partition_of(event: Event) -> Partition:
    """The partition of an event, by the id of its topic."""
    return event.topic, event.partition, event.topic_id


def producer_of(event: Event) -> Producer:
    """The producer of a request, in one epoch."""
    return event.transactional_id, event.producer_id, event.producer_epoch


def produced(rows: Iterable[Row]) -> Produced:
    """Read the events of a history."""
    result = Produced()
    for operation in operations_of(rows, FUNCTIONS):
        event = operation.event
        match event.f:
            case "poll":
                if operation.is_ok and event.isolation == READ_COMMITTED:
                    result.polls.append(operation)
            case "init-producer-id":
                if operation.is_ok and event.transactional_id is not None:
                    result.inits[event.transactional_id].append(operation)
            case "transaction-version":
                if operation.is_ok:
                    result.version = event.count or 0
            case "fetch-stable-offset":
                if operation.is_ok:
                    result.stable_offsets.append(operation)
            case _ if event.transaction is not None:
                _take_in(result, operation, event.transaction)
    for transaction in result.transactions.values():
        commit = transaction.commit
        if commit is not None and not commit.is_ok:
            transaction.fence = fenced_by(commit, result.inits)
    return result


def fenced_by(request: Operation, inits: Mapping[str, Sequence[Operation]]) -> Operation | None:
    """Return the first of the ``fences`` of a request."""
    return next(fences(request, inits.get(request.event.transactional_id or "", ())), None)


def fences(request: Operation, inits: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the InitProducerIds, answered before the request was sent, of which the answers fence its producer.

    They have a higher epoch of the same producer id. Or they have another producer id, and were sent after each answer
    with the id of the request: a coordinator that has given a new id never accepts the former one again. ``inits``:
    those of the transactional id.
    """
    event = request.invoked[1]
    for init in inits:
        newer = init.event
        if init.ended >= request.began:
            continue
        if newer.producer_id == event.producer_id:
            if (newer.producer_epoch or 0) > (event.producer_epoch or 0):
                yield init
        elif _last_answer(event.producer_id, inits) < init.began:
            yield init


def _last_answer(producer_id: int | None, inits: Iterable[Operation]) -> int:
    """Return when (ns) the last InitProducerId was answered with this id; ``NEVER`` without any."""
    times = (init.ended for init in inits if init.event.producer_id == producer_id)
    return max(times, default=NEVER)


def _take_in(result: Produced, operation: Operation, number: int) -> None:
    event = operation.event
    transaction = result.transactions.setdefault(number, Transaction(number))
    if event.f in ACCEPTED_BY_BROKERS:
        (result.requests if operation.is_ok else result.refused).append(operation)
    if event.f == SEND:
        transaction.sends.append(operation)
        if event.value is not None:
            result.sends[event.value] = operation
    elif event.f == SEND_OFFSET:
        transaction.offsets.append(operation)
    elif event.f == ADD_PARTITIONS:
        transaction.added = operation
        result.additions[producer_of(event)].append(operation)
    elif event.f == COMMIT:
        transaction.commit = operation
    elif event.f == ABORT:
        transaction.abort = operation
        result.aborts[producer_of(event)].append(operation)


def operations_of(rows: Iterable[Row], functions: frozenset[str]) -> list[Operation]:
    """Return the operations in the order of their invocations; a completion without its invocation is left out."""
    open_operations: dict[tuple[str, int | None], Operation] = {}
    known: list[Operation] = []
    for row in sorted(rows, key=lambda item: (item[1].time, item[1].process, item[1].seq)):
        event = row[1]
        if event.f not in functions:
            continue
        key = event.process, event.op
        if event.kind == Kind.INVOKE:
            open_operations[key] = Operation(row)
            known.append(open_operations[key])
        elif (operation := open_operations.pop(key, None)) is not None:
            operation.completed = row
    return known

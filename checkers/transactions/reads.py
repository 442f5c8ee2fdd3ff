"""What readers of committed records were given, and what they were not given though they read past it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.transactions.produced import (
    Operation,
    Partition,
    Produced,
    Transaction,
    partition_of,
)


def of_transactions(known: Produced) -> Iterator[tuple[Operation, int, Operation, Transaction]]:
    """Yield each record of a transaction that was read: the poll, its offset, its send and its transaction."""
    for poll in known.polls:
        event = poll.event
        for offset, value in zip(event.offsets or (), event.values or (), strict=False):
            send = known.sends.get(value)
            if send is not None and send.event.transaction is not None:
                yield poll, offset, send, known.transactions[send.event.transaction]


def uncommitted(name: str, known: Produced) -> Iterator[Finding]:
    """Find records of transactions that are certainly not committed."""
    for poll, offset, send, transaction in of_transactions(known):
        if transaction.abort is not None and transaction.abort.is_ok:
            why, ends = "was aborted", [transaction.abort]
        elif transaction.commit is None:
            why, ends = "was never to be committed", []
        elif transaction.commit.is_failed:
            why, ends = "could not be committed", [transaction.commit]
        elif transaction.fence is not None:
            why = "was fenced before its commit was requested"
            ends = [transaction.fence, transaction.commit]
        else:
            continue
        about = f"of transaction {transaction.number}, which {why}"
        yield _read(name, poll, offset, send, about, *ends)


def undecided(name: str, known: Produced) -> Iterator[Finding]:
    """Find records that were read while their transaction, or an earlier one of the partition, was open."""
    firsts = first_offsets(known)
    for poll, offset, send, transaction in of_transactions(known):
        commit = transaction.commit
        if transaction.may_be_committed and commit is not None and commit.began > poll.ended:
            about = f"of transaction {transaction.number}, whose commit was not yet asked for"
            yield _read(name, poll, offset, send, about, commit)
    for poll in known.polls:
        offsets = poll.event.offsets
        if not offsets:
            continue
        start = poll.event.log_start_offset or 0
        for first, sent, transaction in firsts.get(partition_of(poll.event), ()):
            if first >= offsets[-1]:
                break
            opened = sent if first >= start else _stands_from(transaction, sent, start)
            if opened is None or (opened.event.offset or 0) >= offsets[-1]:
                continue
            if opened.ended < poll.began and transaction.end_began > poll.ended:
                sentence = (
                    f"{poll.event.process} was given offset {offsets[-1]} of {_tp(poll)} while transaction "
                    f"{transaction.number}, which has offset {opened.event.offset} there, was open."
                )
                yield finding(
                    name, _tp(poll), sentence, opened.row, poll.row, _end_row(transaction)
                )


def _stands_from(transaction: Transaction, sent: Operation, start: int) -> Operation | None:
    """Return the transaction's first acknowledged record in the same partition that stands at ``start`` or behind."""
    partition = partition_of(sent.event)
    return next(
        (
            send
            for send in transaction.sends
            if send.is_ok
            and partition_of(send.event) == partition
            and (send.event.offset or 0) >= start
        ),
        None,
    )


def torn(name: str, known: Produced) -> Iterator[Finding]:
    """Find records of committed transactions that a poll has passed over."""
    shown = {
        transaction.number: poll
        for poll, _, _, transaction in of_transactions(known)
        if transaction.may_be_committed
    }
    polls = polls_by_partition(known)
    for transaction in known.transactions.values():
        commit = transaction.commit
        if commit is None or not (commit.is_ok or transaction.number in shown):
            continue
        proof = commit if commit.is_ok else shown[transaction.number]
        for send in transaction.sends:
            if not stays(send):
                continue
            passing = passed_over(send, polls.get(partition_of(send.event), []))
            if passing is not None:
                yield _torn(name, transaction, send, passing, proof)


def stays(send: Operation) -> bool:
    """Whether the offset of a record is known, and compaction does not remove it."""
    event = send.event
    return send.is_ok and event.key is None and event.offset is not None and event.offset >= 0


def polls_by_partition(known: Produced) -> dict[Partition, list[Operation]]:
    """The polls of each partition that returned a batch, by the position from which they read."""
    polls: dict[Partition, list[Operation]] = defaultdict(list)
    for poll in known.polls:
        if poll.event.last_offset is not None:
            polls[partition_of(poll.event)].append(poll)
    for listed in polls.values():
        listed.sort(key=position)
    return polls


def position(poll: Operation) -> int:
    return poll.event.offset or 0


def passed_over(send: Operation, polls: list[Operation]) -> Operation | None:
    """Return a poll that read over the offset of a record, once it had been sent, without returning it."""
    offset = send.event.offset or 0
    for poll in polls[: bisect_right(polls, offset, key=position)]:
        if (poll.event.last_offset or 0) < offset or poll.ended < send.began:
            continue
        offsets = poll.event.offsets or []
        index = bisect_left(offsets, offset)
        if index == len(offsets) or offsets[index] != offset:
            return poll
    return None


def first_offsets(known: Produced) -> dict[Partition, list[tuple[int, Operation, Transaction]]]:
    """Where the transactions of a partition begin for certain, of those that were open until their producer ended them.

    An acknowledged end proves that the coordinator had not decided before: it would have refused the producer. With
    ``transaction.version`` 2 only a commit proves that.
    """
    firsts: dict[Partition, list[tuple[int, Operation, Transaction]]] = defaultdict(list)
    for transaction in known.transactions.values():
        if not known.was_open(transaction):
            continue
        first: dict[Partition, Operation] = {}
        for send in transaction.sends:
            if send.is_ok and (send.event.offset or 0) >= 0:
                first.setdefault(partition_of(send.event), send)
        for partition, send in first.items():
            firsts[partition].append((send.event.offset or 0, send, transaction))
    for listed in firsts.values():
        listed.sort(key=lambda item: item[0])
    return firsts


def _end_row(transaction: Transaction) -> int | None:
    ends = [end for end in (transaction.commit, transaction.abort) if end is not None]
    return ends[0].invoked[0] if ends else None


def _tp(operation: Operation) -> str:
    return tp_name(operation.event.topic, operation.event.partition)


def _read(
    name: str, poll: Operation, offset: int, send: Operation, about: str, *ends: Operation
) -> Finding:
    sentence = (
        f"{poll.event.process} read committed records and was given value {send.event.value} at offset {offset} of "
        f"{_tp(poll)}, {about}."
    )
    return finding(name, _tp(poll), sentence, send.invoked[0], poll.row, *(end.row for end in ends))


def _torn(
    name: str, transaction: Transaction, send: Operation, poll: Operation, proof: Operation
) -> Finding:
    sentence = (
        f"{poll.event.process} read committed records of {_tp(poll)} over offset {send.event.offset} and was not given "
        f"value {send.event.value}, of transaction {transaction.number}, which was committed."
    )
    return finding(name, _tp(poll), sentence, send.row, proof.row, poll.row)

"""Consume, transform, produce: whether the committed output has each input record exactly once.

A producer of a group reads committed records of an input partition, and writes a record for each of them
(``derived_from``). Those records and the position behind its input are committed in one transaction.

* **exactly-once**: in the committed output, each input record is derived exactly once, between the first and the last
  position that the group has committed.
  Duplicate: two records that are derived from one input record are both committed. A record is committed if its commit
  was acknowledged, or if a reader of committed records was given it.
  Missing: a committed position has passed the input record, and no record that is derived from it is committed.
  Smallest breaks: an input record is derived in two transactions, and both commits are acknowledged; the same with
  commits of unknown outcome and a reader that is given both records; position 2 is committed with the record that is
  derived from offset 1, and nothing was derived from offset 0; a transaction with position 1 is aborted, and position 1
  is read as the committed one; a commit of unknown outcome took effect for the position, and readers passed over the
  record.

Why this is the promise: the markers of one transaction decide the output and the position together (KIP-98). The next
owner of a partition waits until no position is pending, so it begins where the last committed transaction ended. The
former owner commits no position after that, because its generation of the group has ended (KIP-447).

A position is committed if it was read as the committed one, or if its transaction is: its commit was acknowledged, or a
reader of committed records was given one of its records. A group that is answered no position begins at offset 0.

What a correct cluster does and is not convicted for: it derives an input record again whose transaction was aborted;
a commit of unknown outcome takes effect, or does not; an open transaction at the end decides nothing. Where
acknowledged records may be lost, findings are reported and allowed, like those of ``check``.

Not judged: input that stands at several offsets, since a producer without idempotence may have written it twice. Input
below the first known position, and behind the last one. Input that no reader was given again after the position had
passed it: retention or compaction may have removed it before the producer came there.

``unknown``: a position has passed an input record, no derived record is known to be committed, and one may be. Its
commit has no certain outcome, and no reader of committed records has passed over its offset.

Limit: a transaction belongs to the groups whose positions it commits. Records without a position are not judged.
Source: KIP-98, KIP-129, KIP-447.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.transactions.produced import (
    Operation,
    Partition,
    Produced,
    Transaction,
    partition_of,
)
from nemesis.checkers.transactions.reads import passed_over, polls_by_partition, stays

_Cell = tuple[Partition, int]
"""A partition and an offset in it."""
_Group = str | None


class Position(NamedTuple):
    """A position that a group has committed in a partition."""

    offset: int
    since: int
    """Everything below it was read before this time."""
    row: int


class Output(NamedTuple):
    """A record that was written for an input record, in a transaction with a position of the group."""

    send: Operation
    transaction: Transaction


class Input(NamedTuple):
    """An input record that a committed position has passed."""

    value: int
    offset: int
    poll: Operation
    """Gave it to a reader of committed records after that."""
    position: Position


class _Fate(Enum):
    """What the history says about an output record."""

    COMMITTED = auto()
    ABSENT = auto()
    OPEN = auto()


@dataclass(slots=True)
class Given:
    """What readers of committed records were given."""

    polls: dict[int, Operation] = field(default_factory=dict)
    """By value, the first poll that returned it."""
    cells: dict[int, set[_Cell]] = field(default_factory=lambda: defaultdict(set))
    """By value, where it stands."""
    last: dict[Partition, dict[int, tuple[int, Operation]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By partition and offset, the value there, and the last poll that returned it."""
    by_partition: dict[Partition, list[Operation]] = field(default_factory=dict)


def given_to_readers(known: Produced) -> Given:
    """Return what readers of committed records were given."""
    given = Given(by_partition=polls_by_partition(known))
    for poll in known.polls:
        event, partition = poll.event, partition_of(poll.event)
        for offset, value in zip(event.offsets or (), event.values or (), strict=False):
            given.polls.setdefault(value, poll)
            given.cells[value].add((partition, offset))
            given.last[partition][offset] = value, poll
    return given


def duplicates(name: str, known: Produced, given: Given) -> Iterator[Finding]:
    """Find input records that are derived more than once in the committed output."""
    for (group, value), outputs in _outputs(known).items():
        cells = given.cells.get(value, set())
        committed = [output for output in outputs if _fate(output, given) is _Fate.COMMITTED]
        if len(cells) == 1 and len(committed) > 1:
            yield _duplicate(name, group, value, committed, given)


def passed_inputs(known: Produced, given: Given) -> list[tuple[_Group, Input]]:
    """Return the input records between the first and the last committed position of a group."""
    return [
        (group, record)
        for (group, partition), positions in _positions(known, given).items()
        for record in _inputs(partition, positions, given)
    ]


def derived_again(known: Produced, inputs: Sequence[tuple[_Group, Input]]) -> int:
    """Return how many of these input records several records were derived from, most of them aborted."""
    outputs = _outputs(known)
    return sum(len(outputs.get((group, record.value), ())) > 1 for group, record in inputs)


def missing(
    name: str, known: Produced, given: Given, inputs: Sequence[tuple[_Group, Input]]
) -> Iterator[Finding]:
    """Find input records that a position has passed, and that the committed output lacks, or may lack."""
    outputs = _outputs(known)
    for group, record in inputs:
        written = outputs.get((group, record.value), [])
        fates = [_fate(output, given) for output in written]
        if _Fate.COMMITTED in fates:
            continue
        is_open = _Fate.OPEN in fates
        shown = [output for output, fate in zip(written, fates, strict=True) if fate is _Fate.OPEN]
        verdict = Verdict.UNKNOWN if is_open else Verdict.INVALID
        yield _missing(name, group, record, shown or written, given, verdict)


def _outputs(known: Produced) -> dict[tuple[_Group, int], list[Output]]:
    """Return the records that were written for each input record, by group and value of the input."""
    outputs: dict[tuple[_Group, int], list[Output]] = defaultdict(list)
    for transaction in known.transactions.values():
        groups = {operation.event.group for operation in transaction.offsets}
        for send in transaction.sends:
            value = send.event.derived_from
            if value is not None:
                for group in groups:
                    outputs[group, value].append(Output(send, transaction))
    return outputs


def _fate(output: Output, given: Given) -> _Fate:
    """Say whether an output record is committed."""
    send, transaction = output
    if send.event.value in given.polls:
        return _Fate.COMMITTED
    if send.is_failed or not transaction.may_be_committed or _skipped(send, given) is not None:
        return _Fate.ABSENT
    commit = transaction.commit
    is_acknowledged = send.is_ok and commit is not None and commit.is_ok
    return _Fate.COMMITTED if is_acknowledged else _Fate.OPEN


def _skipped(send: Operation, given: Given) -> Operation | None:
    """Return a poll of committed records that read over a record without returning it."""
    polls = given.by_partition.get(partition_of(send.event), [])
    return passed_over(send, polls) if stays(send) else None


def _positions(known: Produced, given: Given) -> dict[tuple[_Group, Partition], list[Position]]:
    """Return the committed positions of each group in each partition."""
    positions: dict[tuple[_Group, Partition], list[Position]] = defaultdict(list)
    for read in known.stable_offsets:
        event = read.event
        offset = max(event.offset or 0, 0)
        position = Position(offset, read.ended, read.row)
        positions[event.group, partition_of(event)].append(position)
    for transaction in known.transactions.values():
        if not is_committed(transaction, given):
            continue
        for asked in transaction.offsets:
            event = asked.event
            if asked.is_ok and event.offset is not None:
                position = Position(event.offset, asked.began, asked.row)
                positions[event.group, partition_of(event)].append(position)
    return positions


def is_committed(transaction: Transaction, given: Given) -> bool:
    """Whether its commit was acknowledged, or a reader of committed records was given one of its records."""
    commit = transaction.commit
    if commit is None or commit.is_failed:
        return False
    return commit.is_ok or any(send.event.value in given.polls for send in transaction.sends)


def _inputs(partition: Partition, positions: list[Position], given: Given) -> Iterator[Input]:
    """Yield the input records that a position has passed, and that a reader was given afterwards."""
    ordered = sorted(positions, key=lambda position: position.offset)
    earliest = _earliest_behind(ordered)
    for offset, (value, poll) in sorted(given.last[partition].items()):
        index = bisect_right(ordered, offset, key=lambda position: position.offset)
        if offset < ordered[0].offset or index == len(ordered) or len(given.cells[value]) > 1:
            continue
        if poll.began > earliest[index].since:
            yield Input(value, offset, poll, earliest[index])


def _earliest_behind(ordered: Sequence[Position]) -> list[Position]:
    """Return for each index the earliest of the positions from there on."""
    earliest: list[Position] = []
    for position in reversed(ordered):
        is_earlier = not earliest or position.since < earliest[-1].since
        earliest.append(position if is_earlier else earliest[-1])
    return earliest[::-1]


def _committed_by(output: Output, given: Given) -> int | None:
    """Return the row of the event that shows that an output record is committed."""
    commit = output.transaction.commit
    if commit is not None and commit.is_ok:
        return commit.row
    poll = given.polls.get(output.send.event.value or 0)
    return None if poll is None else poll.row


def _duplicate(
    name: str, group: _Group, value: int, committed: Sequence[Output], given: Given
) -> Finding:
    poll = given.polls[value]
    source = tp_name(poll.event.topic, poll.event.partition)
    copies = " and ".join(
        f"value {output.send.event.value} in transaction {output.transaction.number}"
        for output in committed[:2]
    )
    sentence = (
        f"The committed output of group {group} has {len(committed)} records that are derived from value {value} of "
        f"{source}: {copies}."
    )
    rows = [
        row for output in committed[:2] for row in (output.send.row, _committed_by(output, given))
    ]
    return finding(name, source, sentence, poll.row, *rows)


def _missing(
    name: str,
    group: _Group,
    record: Input,
    written: Sequence[Output],
    given: Given,
    verdict: Verdict,
) -> Finding:
    source = tp_name(record.poll.event.topic, record.poll.event.partition)
    why = [_why_absent(output, given) for output in written[:3]]
    sentence = (
        f"Group {group} committed offset {record.position.offset} of {source} behind value {record.value} "
        f"at offset {record.offset}"
    )
    if verdict is Verdict.UNKNOWN:
        values = ", ".join(str(output.send.event.value) for output in written)
        sentence += f"; whether a record derived from it is committed is not known: {values}."
    elif written:
        clauses = "; ".join(clause for clause, _ in why)
        sentence += f", and no record derived from it is committed: {clauses}."
    else:
        sentence += ", and no record was derived from it."
    rows = [
        row
        for output, (_, end) in zip(written, why, strict=False)
        for row in (output.send.row, *(() if end is None else (end.row,)))
    ]
    return finding(
        name, source, sentence, *rows, record.position.row, record.poll.row, verdict=verdict
    )


def _why_absent(output: Output, given: Given) -> tuple[str, Operation | None]:
    """Say why an output record is not committed, and name the operation that shows it."""
    send, transaction = output
    value, number = f"value {send.event.value}", f"transaction {transaction.number}"
    if send.is_failed:
        return f"{value} was refused", None
    if transaction.abort is not None:
        return f"{value} is of {number}, which was aborted", transaction.abort
    if transaction.commit is None:
        return f"{value} is of {number}, which was never to be committed", None
    if not transaction.may_be_committed:
        return f"{value} is of {number}, which could not be committed", transaction.commit
    skipping = _skipped(send, given)
    reader = "a reader" if skipping is None else skipping.event.process
    return f"{reader} read over {value}", skipping or transaction.commit

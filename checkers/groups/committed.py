"""What is read as the committed offset of a partition."""

from __future__ import annotations

from collections.abc import Iterator

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.groups.acknowledged import Acknowledged
from nemesis.checkers.groups.group_operations import COMMIT, FETCH, Group, Operation

NOTHING = -1
"""The offset, and the number of the commit, where nothing is committed."""


def misread(name: str, key: str, group: Group, known: Acknowledged) -> Iterator[Finding]:
    """Find offsets that were read and that no commit explains."""
    commits = {item.event.value: item for item in group.operations if item.event.f == COMMIT}
    for read in group.ok(FETCH):
        number = NOTHING if read.event.value is None else read.event.value
        commit = commits.get(number)
        about = f"Broker {read.event.node} answered that {_offset(read)} of {tp_name(*read.tp)} is committed in {key}"
        if number == NOTHING and read.event.offset == NOTHING:
            commit = None
        elif (why := _no_source(read, commit)) is not None:
            yield finding(name, key, f"{about}, {why}.", _last_row(commit), *_rows(read))
            continue
        required = known.offset_at(read)
        if required is not None and _precedes(commit, required):
            sentence = (
                f"{about}, but {_offset(required)} was acknowledged before, and committed later."
            )
            yield finding(name, key, sentence, _last_row(commit), _last_row(required), *_rows(read))


def _no_source(read: Operation, commit: Operation | None) -> str | None:
    """Return why the read offset cannot come from this commit; None if it can."""
    if commit is None or commit.tp != read.tp or commit.began > read.ended:
        return "which no member had committed"
    if commit.is_refused:
        return "but that commit was refused"
    wrote = commit.event
    if (wrote.offset, wrote.leader_epoch) != (read.event.offset, read.event.leader_epoch):
        return f"but offset {wrote.offset} in leader epoch {wrote.leader_epoch} was committed"
    return None


def _precedes(commit: Operation | None, required: Operation) -> bool:
    """Whether a commit (None: no commit at all) came before another one for certain."""
    return commit is None or (commit.is_ok and commit.ended < required.began)


def _offset(operation: Operation) -> str:
    offset = operation.event.offset
    return "no offset" if offset == NOTHING else f"offset {offset}"


def _rows(operation: Operation) -> tuple[int, int | None]:
    return operation.invoked[0], _last_row(operation)


def _last_row(operation: Operation | None) -> int | None:
    if operation is None:
        return None
    return operation.invoked[0] if operation.completed is None else operation.completed[0]

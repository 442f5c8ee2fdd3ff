"""What is read as the committed offset of a partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.groups.acknowledged import Acknowledged
from nemesis.checkers.groups.group_operations import COMMIT, FETCH, Group, Operation

NOTHING = -1
"""The offset, and the number of the commit, where nothing is committed."""


DELETE_TOPIC: Final = "delete-topic"


def deleted_topics(rows: Iterable[Row]) -> frozenset[str]:
    """Return the topics that administrators deleted, or asked to delete, at any time.

    A coordinator removes the offsets of a topic when it hears of the deletion. It may hear late, when a new topic has
    the name already, and there is an acknowledged commit for that one.
    """
    known = list(rows)
    asked = {event.topic for _, event in known if event.f == DELETE_TOPIC}
    paths = [
        (event.path or "").removeprefix(znodes.TOPICS if event.zk_op == "delete" else znodes.MARKS)
        for _, event in znodes.changes(known)
    ]
    return frozenset({topic for topic in (*asked, *paths) if topic and "/" not in topic})


def misread(
    name: str, key: str, group: Group, known: Acknowledged, deleted: frozenset[str]
) -> Iterator[Finding]:
    """Find offsets that were read and that no commit explains; those of deleted topics may be missing."""
    commits = {item.event.value: item for item in group.operations if item.event.f == COMMIT}
    for read in group.ok(FETCH):
        number = NOTHING if read.event.value is None else read.event.value
        commit = commits.get(number)
        about = f"Broker {read.event.node} answered that {_offset(read)} of {tp_name(*read.tp)} is committed in {key}"
        if number == NOTHING and read.event.offset == NOTHING:
            if read.event.topic in deleted:
                continue
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

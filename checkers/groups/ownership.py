"""Which members own a partition in one generation, and have shown that they are in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.groups.group_operations import COMMIT, Group, Operation, Ownership
from nemesis.history.events import Event


class Confirmed(NamedTuple):
    """A member owned a partition, and a settled commit that it made meanwhile was acknowledged."""

    ownership: Ownership
    commit: Operation


def confirmed(group: Group) -> list[Confirmed]:
    """Return the ownerships of members of which a commit was acknowledged, in the order of their beginnings."""
    commits: dict[tuple[str, str | None, int], list[Operation]] = defaultdict(list)
    for commit in group.ok(COMMIT):
        if not commit.is_settled:
            continue  # the generation of its member may be another one of the same number
        commits[commit.event.process, commit.event.member, commit.generation].append(commit)
    owners = []
    for ownership in group.ownerships:
        event = ownership.event
        made = commits[event.process, event.member, event.generation or 0]
        proof = next((item for item in made if event.time <= item.began <= ownership.ended), None)
        if proof is not None:
            owners.append(Confirmed(ownership, proof))
    return owners


def shared(name: str, key: str, owners: list[Confirmed]) -> Iterator[Finding]:
    """Find partitions with two owners in one generation."""
    first: dict[tuple[int | None, str | None, int | None], Confirmed] = {}
    for owner in owners:
        event = owner.ownership.event
        other = first.setdefault((event.generation, event.topic, event.partition), owner)
        if _identity(other.ownership.event) == _identity(event):
            continue
        sentence = (
            f"{tp_name(event.topic, event.partition)} belonged to {other.ownership.event.member} and to "
            f"{event.member} in generation {event.generation} of {key}."
        )
        rows = (_rows(other), _rows(owner))
        yield finding(name, key, sentence, *rows[0], *rows[1])


def _identity(event: Event) -> tuple[bool, str | None]:
    """Who owns: the processes of a static member are one owner, though each has a member id of its own."""
    if event.instance is not None:
        return True, event.instance
    return False, event.member


def _rows(owner: Confirmed) -> tuple[int, int | None]:
    completed = owner.commit.completed
    return owner.ownership.assigned[0], None if completed is None else completed[0]

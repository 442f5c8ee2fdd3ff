"""How long members wait for their assignments, and how long each generation took until it was assigned."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from nemesis.checkers.groups.group_operations import COMMIT, JOIN, SYNC, Group, Operation

_MS: Final = 1_000_000


def durations(group: Group) -> list[float]:
    """Return how long each assigned generation took, in ms: from the first JoinGroup to the last assignment."""
    spans: dict[int, tuple[int, int]] = {}
    for wait in waits(group):
        last = wait[-1]
        if last.event.f == SYNC and last.is_ok:
            began, ended = spans.get(last.generation, (wait[0].began, last.ended))
            spans[last.generation] = min(began, wait[0].began), max(ended, last.ended)
    return [(ended - began) / _MS for began, ended in spans.values()]


def waits(group: Group) -> Iterator[list[Operation]]:
    """Return the requests of each process from its first JoinGroup to its assignment, or until it goes or the end."""
    by_process = sorted(group.operations, key=lambda item: item.event.process)
    for _, operations in groupby(by_process, key=lambda item: item.event.process):
        wait: list[Operation] = []
        for operation in operations:
            if operation.event.f not in (JOIN, SYNC):
                if operation.event.f != COMMIT and wait:
                    yield wait
                    wait = []
                continue
            wait.append(operation)
            if operation.event.f == SYNC and operation.is_ok:
                yield wait
                wait = []
        if wait:
            yield wait

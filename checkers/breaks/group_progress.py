"""The smallest histories in which a group passes over records."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import history, poll
from nemesis.checkers.breaks.groups import commit
from nemesis.history.events import Event


def read(time: int, start: int, stop: int, *, member: str = "a") -> list[Event]:
    """A poll of a member that returned t-0 from one offset up to the other, which is not included."""
    values = {offset: offset for offset in range(start, stop)}
    last = stop - 1 if stop > start else None
    return poll(time, start, values, process=f"member-{member}.1", last_offset=last)


GROUP_PROGRESS: Final = (
    history(read(0, 0, 5), commit(3, 1, 1, 7)),
    history(read(0, 3, 7), commit(3, 1, 1, 7)),
    history(commit(0, 1, 1, 5), read(1, 0, 5)),
)

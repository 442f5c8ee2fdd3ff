"""The smallest histories in which the offsets that clients see go back."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import become_leader, client, history, loaded
from nemesis.history.events import Event


def answered(time: int, f: str, node: int, offset: int, *, taking: int = 1) -> list[Event]:
    """A query of a broker and its answer, ``taking`` ticks later."""
    about: dict[str, Any] = {"node": node}
    return [
        client(time, "query-0", "invoke", f, time, **about),
        client(time + taking, "query-0", "ok", f, time, offset=offset, **about),
    ]


CLIENT_OFFSETS_GROW: Final = (
    history(
        become_leader(1, 2, 3, 5),
        answered(2, "latest-offset", 2, 4),
    ),
    history(
        become_leader(1, 1, 2, 0),
        answered(2, "latest-offset", 1, 5),
        answered(4, "latest-offset", 1, 4),
    ),
    history(
        loaded(1, 1, 9),
        answered(2, "earliest-offset", 1, 3),
        answered(4, "earliest-offset", 1, 2),
    ),
)

"""The smallest histories in which a broker answers in another leader epoch than the stated one."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import client, history
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.history.events import Event


def stating(time: int, node: int, epoch: int, *, error: str | None = None) -> list[Event]:
    """A query of a broker that states a leader epoch, and a tick later the answer, or this error."""
    about: dict[str, Any] = {"node": node, "leader_epoch": epoch}
    outcome = {"offset": 5} if error is None else {"error": error}
    return [
        client(time, "query-0", "invoke", "latest-offset", time, **about),
        client(
            time + 1,
            "query-0",
            "ok" if error is None else "fail",
            "latest-offset",
            time,
            **about,
            **outcome,
        ),
    ]


LEADER_EPOCHS_FENCED: Final = (
    history(follows(1, 1, 2, 5), stating(2, 1, 1)),
    history(follows(1, 1, 2, 5), stating(2, 1, 3)),
    history(stating(1, 1, 2, error="FENCED_LEADER_EPOCH"), stating(3, 1, 2)),
    history(stating(1, 1, 3), stating(3, 1, 2)),
)

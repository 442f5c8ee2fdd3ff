"""The smallest histories in which an answer names other partitions than its client asks for."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import history
from nemesis.history.events import Event

SESSION: Final = 55


def fetched(
    time: int,
    epoch: int,
    asked: str,
    answered: str,
    *,
    without: str = "",
    failed: str = "",
    **columns: Any,
) -> Event:
    """An answer of broker 1 to a fetch of consumer-0: it asks for these partitions of t, one digit each.

    ``without``: the partitions that the request removes from the session; ``failed``: those with an error.
    """
    about: dict[str, Any] = {"process": "consumer-0", "node": 1, "error": "NONE", "duration_ms": 0}
    about |= {"fetch_session": SESSION if epoch > 0 else 0, "fetch_epoch": epoch}
    about |= {"asked": named(asked), "forgotten": named(without), "answered": named(answered)}
    about |= {"failed": named(failed)}
    return Event(**{"time": time, "seq": time, "kind": "fetch-received", **about, **columns})


def named(partitions: str) -> list[str]:
    """Return how a fetch names the partitions of t with these digits."""
    return [f"t-{partition}" for partition in partitions]


FETCHES_ANSWERED: Final = (
    history(fetched(1, -1, "0", "01")),
    history(fetched(1, 0, "0", "")),
    history(fetched(1, 0, "01", "01"), fetched(2, 1, "", "1", without="1")),
    history(fetched(1, 0, "01", "01"), fetched(2, 1, "", "", without="1"), fetched(3, 2, "", "1")),
    history(fetched(1, 0, "0", "0"), fetched(2, 1, "", "1")),
    history(fetched(1, 0, "0", "0"), fetched(2, 1, "1", "0")),
    history(fetched(1, 0, "0", "0", failed="0"), fetched(2, 1, "", "")),
)

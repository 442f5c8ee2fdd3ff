"""The smallest history in which no transaction is possible at rest."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import client, history
from nemesis.checkers.breaks.hanging import measured, settings
from nemesis.checkers.breaks.transactions_read import IDENTITY, NO_PARTITION
from nemesis.history.events import Event

PROCESS: Final = "final-transaction-0"


def tried(time: int, f: str, error: str | None = "PRODUCER_FENCED") -> list[Event]:
    """A request of the last producer, answered one tick later."""
    about = {**NO_PARTITION, **IDENTITY, "producer_epoch": 0, "transaction": 1}
    outcome = {} if error is None else {"error": error}
    kind = "ok" if error is None else "fail"
    return [
        client(time, PROCESS, "invoke", f, time, **about),
        client(time + 1, PROCESS, kind, f, time, **about, **outcome),
    ]


TRANSACTIONS_POSSIBLE: Final = (
    history(
        settings(),
        tried(900, "init-producer-id", None),
        tried(995, "add-partitions"),
        measured(996),
    ),
)

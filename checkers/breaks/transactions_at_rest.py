"""The smallest histories in which transactions are not possible at rest, or have not ended."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import TP, client, history
from nemesis.checkers.breaks.hanging import measured, settings
from nemesis.checkers.breaks.transactions_read import IDENTITY, NO_PARTITION
from nemesis.history.events import READ_COMMITTED, Event
from nemesis.history.vocabulary.transactions import LAST_READER

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


def begins(time: int, timeout_ms: int = 5) -> Event:
    """A producer states the time-out of its transactions."""
    about = {**NO_PARTITION, "transactional_id": "writes-0", "timeout_ms": timeout_ms}
    return client(time, PROCESS, "invoke", "init-producer-id", time, **about)


def answered(time: int, last_stable_offset: int, high_watermark: int = 9) -> Event:
    """The last reader of committed records is answered by the leader of t-0."""
    about = {"offset": 5, "isolation": READ_COMMITTED, **TP, "offsets": [], "values": []}
    about |= {"last_stable_offset": last_stable_offset, "high_watermark": high_watermark}
    return client(time, LAST_READER, "ok", "poll", time, **about)


TRANSACTIONS_POSSIBLE: Final = (
    history(
        settings(),
        tried(900, "init-producer-id", None),
        tried(995, "add-partitions"),
        measured(996),
    ),
)
LAST_STABLE_OFFSET_AT_REST: Final = (
    history(settings(), begins(1), answered(900, 5), answered(995, 5), measured(996)),
)

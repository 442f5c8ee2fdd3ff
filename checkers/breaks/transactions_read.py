"""The smallest histories in which readers of committed records, or fenced producers, get what they must not."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, client, history
from nemesis.history.events import READ_COMMITTED, Event

NO_PARTITION: Final = dict.fromkeys(TP)
IDENTITY: Final[dict[str, Any]] = {"transactional_id": "writes-0", "producer_id": 7}


def sent(
    time: int, value: int, offset: int, transaction: int = 1, *, epoch: int = 0
) -> list[Event]:
    """A send in a transaction, acknowledged one tick later; a record of t-0."""
    about: dict[str, Any] = {"value": value, "acks": -1, "sequence": offset}
    return request(time, "send", transaction, epoch=epoch, answer={"offset": offset}, **about, **TP)


def request(
    time: int,
    f: str,
    transaction: int = 1,
    *,
    outcome: str = "ok",
    epoch: int = 0,
    answer: dict[str, Any] | None = None,
    **columns: Any,
) -> list[Event]:
    """A request of a producer about its transaction, which ends one tick later."""
    process = f"transactor-{epoch}"
    about = {
        **NO_PARTITION,
        **IDENTITY,
        "producer_epoch": epoch,
        "transaction": transaction,
        **columns,
    }
    error = {} if outcome == "ok" else {"error": "PRODUCER_FENCED"}
    return [
        client(time, process, "invoke", f, time, **about),
        client(time + 1, process, outcome, f, time, **about, **error, **(answer or {})),
    ]


def initialized(time: int, epoch: int) -> list[Event]:
    """A producer is answered its epoch one tick later."""
    process = f"transactor-{epoch}"
    about = {**NO_PARTITION, "transactional_id": "writes-0"}
    f = "init-producer-id"
    return [
        client(time, process, "invoke", f, time, **about),
        client(time + 1, process, "ok", f, time, producer_id=7, producer_epoch=epoch, **about),
    ]


def committed_poll(time: int, position: int, records: dict[int, int], last: int) -> list[Event]:
    """A poll of committed records (offset → value) whose answer ends with the offset ``last``."""
    about = {"offset": position, "isolation": READ_COMMITTED, **TP}
    answer = {
        "offsets": list(records),
        "values": list(records.values()),
        "high_watermark": 100,
        "last_offset": last,
        "last_stable_offset": 100,
        "aborted": [],
    }
    return [
        client(time, "consumer-0", "invoke", "poll", time, **about),
        client(time + 1, "consumer-0", "ok", "poll", time, **about, **answer),
    ]


ABORTED_READ: Final = (
    history(sent(0, 1, 5), request(2, "abort-transaction"), committed_poll(4, 5, {5: 1}, 6)),
    history(sent(0, 1, 5), committed_poll(4, 5, {5: 1}, 6)),
    history(
        sent(0, 1, 5),
        request(2, "commit-transaction", outcome="fail"),
        committed_poll(4, 5, {5: 1}, 6),
    ),
)
READ_BEYOND_LSO: Final = (
    history(sent(0, 1, 5), committed_poll(2, 5, {5: 1}, 5), request(4, "commit-transaction")),
    history(sent(0, 1, 5), committed_poll(2, 6, {6: 9}, 6), request(4, "abort-transaction")),
)
TORN_TRANSACTION: Final = (
    history(sent(0, 1, 0), request(2, "commit-transaction"), committed_poll(4, 0, {2: 9}, 2)),
    history(
        sent(0, 1, 0),
        sent(2, 2, 1),
        request(4, "commit-transaction", outcome="info"),
        committed_poll(6, 0, {1: 2}, 2),
    ),
)
FENCED_PRODUCER: Final = (
    history(initialized(0, 0), initialized(2, 1), sent(4, 1, 5)),
    history(initialized(0, 0), initialized(2, 1), request(4, "add-partitions", count=1)),
    history(initialized(0, 0), initialized(2, 1), request(4, "commit-transaction")),
)

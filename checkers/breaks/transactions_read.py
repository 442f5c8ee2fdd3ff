"""The smallest histories in which readers of committed records, or fenced producers, get what they must not."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, client, history
from nemesis.history.events import READ_COMMITTED, Event

NO_PARTITION: Final = dict.fromkeys(TP)
OUTPUT: Final[dict[str, Any]] = {"topic": "u", "topic_id": "id-u", "partition": 0}
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


def initialized(time: int, epoch: int, producer_id: int = 7) -> list[Event]:
    """A producer is answered its id and its epoch one tick later."""
    process = f"transactor-{epoch}"
    about: dict[str, Any] = {**NO_PARTITION, "transactional_id": "writes-0"}
    f = "init-producer-id"
    return [
        client(time, process, "invoke", f, time, **about),
        client(
            *(time + 1, process, "ok", f, time),
            **about | {"producer_id": producer_id, "producer_epoch": epoch},
        ),
    ]


def went_on(time: int, epoch: int, next_epoch: int) -> list[Event]:
    """A producer is answered its next epoch one tick later."""
    process, f = f"transactor-{epoch}", "init-producer-id"
    about: dict[str, Any] = {**NO_PARTITION, **IDENTITY, "producer_epoch": epoch}
    return [
        client(time, process, "invoke", f, time, **about),
        client(time + 1, process, "ok", f, time, **about | {"producer_epoch": next_epoch}),
    ]


def committed_poll(
    time: int, position: int, records: dict[int, int], last: int, **columns: Any
) -> list[Event]:
    """A poll of committed records (offset → value) whose answer ends with the offset ``last``."""
    about = {"offset": position, "isolation": READ_COMMITTED, **TP, **columns}
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


def derived(
    time: int, value: int, derived_from: int, offset: int, transaction: int = 1, **columns: Any
) -> list[Event]:
    """A send to u-0 of a record that is derived from another one, acknowledged one tick later."""
    about: dict[str, Any] = {"value": value, "acks": -1, "sequence": offset}
    about |= {"derived_from": derived_from, **OUTPUT, **columns}
    answer = {"offset": offset}
    return request(time, "send", transaction, answer=answer, **about)


def position_sent(time: int, offset: int, transaction: int = 1) -> list[Event]:
    """An offset of t-0 is committed in a transaction."""
    about: dict[str, Any] = {"group": "g", "offset": offset, "value": offset, **TP}
    return request(time, "send-offset", transaction, **about)


def position_read(time: int, offset: int) -> list[Event]:
    """The committed offset of t-0 is read, which is stable."""
    process, f, about = "transactor-0", "fetch-stable-offset", {"group": "g"}
    return [
        client(time, process, "invoke", f, time, **about),
        client(time + 1, process, "ok", f, time, offset=offset, value=offset, **about),
    ]


ABORTED_READ: Final = (
    history(sent(0, 1, 5), request(2, "abort-transaction"), committed_poll(4, 5, {5: 1}, 6)),
    history(sent(0, 1, 5), committed_poll(4, 5, {5: 1}, 6)),
    history(
        sent(0, 1, 5),
        request(2, "commit-transaction", outcome="fail"),
        committed_poll(4, 5, {5: 1}, 6),
    ),
    history(
        *(initialized(0, 0), sent(2, 1, 5), initialized(4, 1)),
        *(request(6, "commit-transaction", outcome="info"), committed_poll(8, 5, {5: 1}, 6)),
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
    history(initialized(0, 0), initialized(2, 1), sent(4, 1, 5, epoch=1), went_on(6, 0, 2)),
    history(initialized(0, 0), sent(2, 1, 5), initialized(4, 0)),
    history(initialized(0, 0), initialized(2, 0, 8), request(4, "add-partitions", count=1)),
)
EXACTLY_ONCE: Final = (
    history(
        committed_poll(0, 0, {0: 1}, 0),
        *(derived(2, 8, 1, 0), position_sent(4, 1), request(6, "commit-transaction")),
        *(derived(8, 9, 1, 2, 2), position_sent(10, 1, 2), request(12, "commit-transaction", 2)),
    ),
    history(
        committed_poll(0, 0, {0: 1}, 0),
        *(derived(2, 8, 1, 0), position_sent(4, 1)),
        request(6, "commit-transaction", outcome="info"),
        *(derived(8, 9, 1, 2, 2), position_sent(10, 1, 2)),
        request(12, "commit-transaction", 2, outcome="info"),
        committed_poll(14, 0, {0: 8, 2: 9}, 3, **OUTPUT),
    ),
    history(
        *(position_read(0, -1), committed_poll(2, 1, {1: 2}, 1)),
        *(derived(4, 8, 2, 0), position_sent(6, 2), request(8, "commit-transaction")),
        committed_poll(10, 0, {0: 1, 1: 2}, 1),
    ),
    history(
        *(position_read(0, -1), committed_poll(2, 0, {0: 1}, 0)),
        *(derived(4, 8, 1, 0), position_sent(6, 1), request(8, "abort-transaction")),
        *(position_read(10, 1), committed_poll(12, 0, {0: 1}, 0)),
    ),
    history(
        *(position_read(0, -1), committed_poll(2, 0, {0: 1}, 0)),
        *(derived(4, 8, 1, 0), position_sent(6, 1)),
        request(8, "commit-transaction", outcome="info"),
        *(position_read(10, 1), committed_poll(12, 0, {}, 1, **OUTPUT)),
        committed_poll(14, 0, {0: 1}, 0),
    ),
)
TRANSACTION_ORDER: Final = (
    history(
        *(sent(0, 1, 5), derived(2, 8, 1, 0, 2), request(4, "commit-transaction", 2)),
        request(6, "commit-transaction", 1),
    ),
    history(
        *(derived(0, 8, 9, 0, 1), derived(2, 9, 8, 1, 2)),
        *(request(4, "commit-transaction", 1), request(5, "commit-transaction", 2)),
    ),
    history(sent(0, 1, 6, 1), sent(2, 2, 5, 2)),
)

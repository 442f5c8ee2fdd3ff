"""The smallest histories in which a producer is fenced without a cause."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import client, history
from nemesis.checkers.breaks.transactions_read import IDENTITY, NO_PARTITION
from nemesis.history.events import Event, Kind

TIMEOUT_MS: Final = 5_000


def given(
    at_ms: int, epoch: int, *, process: str = "transactor-0", node: int = 1, unanswered: int = 0
) -> list[Event]:
    """A producer is answered its epoch 1 ms later, after some requests that were not answered."""
    about: dict[str, Any] = {
        **NO_PARTITION,
        "transactional_id": "writes-0",
        "timeout_ms": TIMEOUT_MS,
    }
    f = "init-producer-id"
    answer = {"producer_id": 7, "producer_epoch": epoch, "node": node, "count": unanswered}
    return [
        client(at_ms, process, "invoke", f, at_ms, **about),
        client(at_ms + 1, process, "ok", f, at_ms, **about, **answer),
    ]


def raised(at_ms: int, error: str | None, *, epoch: int = 0, node: int = 1) -> list[Event]:
    """The producer asks for its next epoch, and is answered 1 ms later; ``error`` None: it has it."""
    about: dict[str, Any] = {**NO_PARTITION, **IDENTITY, "timeout_ms": TIMEOUT_MS}
    about["producer_epoch"] = epoch
    outcome = "ok" if error is None else "fail"
    answer = {"producer_epoch": epoch + 1, "count": 0} if error is None else {"error": error}
    f, process = "init-producer-id", "transactor-0"
    return [
        client(at_ms, process, "invoke", f, at_ms, **about),
        client(at_ms + 1, process, outcome, f, at_ms, **about | answer, node=node),
    ]


def asked(
    at_ms: int, f: str, error: str | None = None, *, epoch: int = 0, node: int = 1
) -> list[Event]:
    """A request of the producer about its transaction, answered 1 ms later."""
    about: dict[str, Any] = {
        **NO_PARTITION,
        **IDENTITY,
        "producer_epoch": epoch,
        "transaction": 1,
    }
    outcome = "ok" if error is None else "fail"
    answer = {"node": node} | ({} if error is None else {"error": error})
    return [
        client(at_ms, "transactor-0", "invoke", f, at_ms, **about),
        client(at_ms + 1, "transactor-0", outcome, f, at_ms, **about, **answer),
    ]


def begun(at_ms: int) -> Event:
    """The producer begins its transaction."""
    about: dict[str, Any] = {**IDENTITY, "producer_epoch": 0, "transaction": 1}
    return Event(
        time=at_ms, process="transactor-0", kind=Kind.TRANSACTION_BEGUN, seq=at_ms, **about
    )


PRODUCER_EPOCH_KEPT: Final = (
    history(given(0, 0), begun(2), asked(3, "add-partitions", "PRODUCER_FENCED")),
    history(
        given(0, 0),
        begun(2),
        asked(3, "add-partitions", node=2),
        asked(5, "commit-transaction", "INVALID_PRODUCER_EPOCH", node=2),
    ),
    history(given(0, 0), raised(3, "PRODUCER_FENCED")),
)

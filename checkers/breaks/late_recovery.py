"""The smallest histories in which a partition stays unavailable with no fault in force."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, harness, history
from nemesis.history.events import Event

SETTINGS: Final = {
    "tickTime": 1,
    "zookeeper.session.timeout.ms": 3,
    "replica.lag.time.max.ms": 4,
    "replica.socket.timeout.ms": 2,
    "replica.fetch.backoff.ms": 1,
    "controller.socket.timeout.ms": 2,
    "controller.retry.backoff.ms": 1,
}
"""The bound is 7 + 3 + 6 + 3 + 3 = 22 ms."""


def configured() -> list[Event]:
    """Return the events that state the time-outs."""
    return [
        harness(0, "timeout-setting", setting=name, duration_ms=ms) for name, ms in SETTINGS.items()
    ]


def measured(time: int, *, lag: int = 0, load: int = 0) -> list[Event]:
    """Return the events that state how late harness and machine were, in ms."""
    return [
        harness(time, "harness-lag", duration_ms=lag),
        harness(time, "machine-load", duration_ms=load),
    ]


def fault(
    start: int, stop: int, *, number: int = 0, effect: str = "verified", **columns: Any
) -> list[Event]:
    """Return the events of a fault that was in force."""
    about: dict[str, Any] = {"fault": "pause", "targets": ["broker-2"], **columns}
    steps = [
        (start, "fault-invoke", None),
        (start, "fault-applied", "measured"),
        (stop, "fault-healed", effect),
    ]
    return [
        Event(
            time=time,
            process="nemesis",
            kind=kind,
            seq=time,
            fault_id=number,
            effect=measured_effect,
            **about,
        )
        for time, kind, measured_effect in steps
    ]


def sent(time: int, error: str = "NOT_ENOUGH_REPLICAS", *, process: str = "producer-0") -> Event:
    """Return the completion of a send: acknowledged if the error is ``NONE``."""
    is_ok = error == "NONE"
    return Event(
        time=time,
        process=process,
        kind="ok" if is_ok else "fail",
        seq=time,
        op=time,
        f="send",
        value=time,
        acks=-1,
        error=None if is_ok else error,
        **TP,
    )


REFUSED: Final = [sent(0, "NONE"), *fault(1, 5), sent(27), sent(30)]
"""3 ms longer than the bound."""
END: Final = harness(32, "phase", phase="final-reads")

LATE_RECOVERY: Final = (
    history(configured(), REFUSED, measured(31), END),
    history(configured(), REFUSED, measured(31, load=3), END),
    history(configured(), REFUSED, measured(31, lag=101), END),
    history(configured(), REFUSED, harness(31, "harness-lag", duration_ms=0), END),
    history(configured(), REFUSED, END),
    history(
        configured(),
        [sent(5, "NONE"), sent(27), sent(28)],
        measured(31),
        END,
    ),
)

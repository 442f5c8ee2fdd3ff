"""The smallest histories in which recurring work of a broker begins too early or too late."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import broker, harness, history, started
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    BALANCE_INTERVAL,
    CLEANER_BACKOFF,
    LAG_TIME,
    RETENTION_INTERVAL,
)

RETENTION: Final = "kafka-log-retention"
BALANCE: Final = "auto-leader-rebalance-task"
CLEANER: Final = "kafka-log-cleaner-thread-0"
ISR: Final = "isr-expiration"


def turn(time: int, job: str = RETENTION) -> Event:
    """Return what broker 1 traces when a job starts."""
    return broker(time, 1, "job-started", step=job)


def intervals() -> list[Event]:
    """Return the events that state an interval of 500 ms, one of a second for balance, 600 ms for ISRs."""
    return [
        harness(0, "broker-property", setting=RETENTION_INTERVAL, count=500),
        harness(0, "broker-property", setting=CLEANER_BACKOFF, count=500),
        harness(0, "broker-property", setting=BALANCE_INTERVAL, count=1),
    ]


def ended(time: int, load: int = 0) -> list[Event]:
    """Return the end of a run whose machine was measured."""
    return [*measured(time, load=load), harness(time, "phase", phase="end")]


STARTED: Final = (intervals(), started(0, 1, unclean=False))
REGISTERED: Final = broker(1, 1, "broker-registered", broker_epoch=1, session=1, zxid=1)
ISR_EVERY_300_MS: Final = harness(0, "timeout-setting", setting=LAG_TIME, duration_ms=600)

JOBS_ON_TIME: Final = (
    history(*STARTED, turn(498), ended(600)),
    history(*STARTED, turn(500), turn(1101), ended(1200)),
    history(*STARTED, turn(600), turn(1098), ended(1200)),
    history(*STARTED, turn(500, BALANCE), turn(1498, BALANCE), ended(1500)),
    history(*STARTED, turn(500, CLEANER), turn(998, CLEANER), ended(1000)),
    history(*STARTED, REGISTERED, turn(602), ended(700)),
    history(*STARTED, ISR_EVERY_300_MS, REGISTERED, turn(500), ended(700)),
    history(*STARTED, fault(600, 700), turn(500), turn(1311), ended(1400)),
    history(*STARTED, turn(500), turn(1101), ended(1200, load=200)),
)

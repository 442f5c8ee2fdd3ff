"""The smallest histories in which a failed log directory is not handled."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import (
    append,
    broker,
    elected,
    grant,
    history,
    loaded,
    state,
    znode,
)
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.checkers.breaks.notifications import finished
from nemesis.history.events import Event

EVENT: Final = "/log_dir_event_notification/log_dir_event_0000000000"
FAILED_DIR: Final = "/a"
REFUSED: Final = '{"disk":{"broker-1":{"refused":{"EIO":1}}}}'


def holds(time: int, node: int, log_dir: str, **columns: int) -> Event:
    """Return the event that a broker has the log of t-0 in this directory."""
    return loaded(time, node, 0, log_dir=log_dir, **columns)


def failed(time: int, node: int, log_dir: str = FAILED_DIR) -> Event:
    """Return the event that a broker's directory failed."""
    return broker(time, node, "log-dir-failed", log_dir=log_dir, error="EIO")


def notified(zxid: int, node: int) -> Event:
    """Return the notification of a broker."""
    data = f'{{"version":1,"broker":{node},"event":1}}'
    return znode(zxid, 10 * node, EVENT, zk_op="create", data=data)


def alive(time: int, node: int, partition: int = 9) -> Event:
    """Return an event that shows that the broker's process lives; about a partition of another directory."""
    return append(time, node, 1, 0, partition=partition)


def failing(start: int, stop: int, detail: str = REFUSED) -> list[Event]:
    """Return the events of the fault of broker 1's directory."""
    broken = {"fault": "log-dir-failure", "detail": detail}
    return fault(start, stop, number=7, targets=["broker-1"], **broken)


DEPENDS: Final = [state(4, 20, 1, 1, [1, 2]), elected(1, 4, 1, [1, 2])]
BEGUN: Final = (configured(), grant(2, 20, 2, 1), finished(1, 1), holds(1, 1, FAILED_DIR))
"""A session may be silent for 4 ms, and a control request be lost for 3 ms more."""

LOG_DIR_FAILURES_HANDLED: Final = (
    history(*BEGUN, failing(2, 9), measured(10)),
    history(*BEGUN, failed(2, 1), notified(5, 1), append(7, 1, 1, 0), measured(8)),
    history(*BEGUN, failed(2, 1), alive(9, 1), measured(10)),
    history(*BEGUN, DEPENDS, failed(2, 1), notified(5, 1), alive(12, 1), measured(13)),
    history(*BEGUN, DEPENDS, failed(2, 1), notified(5, 1), alive(250, 1), measured(251, load=241)),
)

"""The smallest histories in which a notification in ZooKeeper is not handled."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import broker, grant, harness, history, znode
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.history.events import Event

LOG_DIR_EVENT: Final = "/log_dir_event_notification/log_dir_event_0000000000"
ISR_CHANGE: Final = "/isr_change_notification/isr_change_0000000000"
END: Final = harness(20, "phase", phase="end")


def created(zxid: int, path: str = LOG_DIR_EVENT) -> Event:
    """Return the creation of a notification by broker 2."""
    return znode(zxid, 20, path, zk_op="create")


def finished(time: int, epoch: int) -> Event:
    """Return the end of broker 1's failover."""
    return broker(time, 1, "controller-failover", controller_epoch=epoch, live=[1, 2])


def later(time: int, zxid: int) -> Event:
    """Return an event that shows that ZooKeeper had committed this transaction."""
    return broker(time, 2, "broker-registered", broker_epoch=zxid, session=21, zxid=zxid)


_IN_OFFICE: Final = (configured(), grant(2, 10, 1, 1), finished(1, 1), created(3, ISR_CHANGE))

NOTIFICATIONS_HANDLED: Final = (
    history(created(1), grant(2, 10, 1, 1), finished(1, 1)),
    history(
        created(1),
        grant(2, 10, 1, 1),
        finished(1, 1),
        grant(3, 20, 2, 2),
        znode(4, 20, LOG_DIR_EVENT, zk_op="delete"),
    ),
    history(*_IN_OFFICE, fault(5, 7), later(15, 4), measured(20), END),
    history(*_IN_OFFICE, later(2, 4), fault(5, 14), measured(20), END),
    history(*_IN_OFFICE, fault(5, 7), later(15, 4), measured(20, load=1), END),
)

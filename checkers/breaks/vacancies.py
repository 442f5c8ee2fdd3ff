"""The smallest histories in which the office of the controller stays vacant."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import broker, grant, harness, history, started, znode
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.history.events import Event

END: Final = harness(30, "phase", phase="end")


def session(time: int, node: int, state: str, number: int) -> Event:
    """Return what a broker traces of its session."""
    return broker(time, node, "session-state", session=number, session_state=state)


def registered(time: int, node: int, zxid: int, number: int) -> Event:
    """Return the registration of a broker in this session."""
    return broker(time, node, "broker-registered", broker_epoch=zxid, session=number, zxid=zxid)


def joined(time: int, node: int, number: int) -> list[Event]:
    """Return what a broker traces until it is registered."""
    return [
        started(time, node, unclean=False),
        session(time, node, "connected", number),
        registered(time, node, 1, number),
    ]


def gone(zxid: int, number: int, reason: str = "expired") -> list[Event]:
    """Return how ZooKeeper ends the session of a controller, and deletes its ``/controller``."""
    closed = Event(
        time=-1,
        process="zookeeper",
        kind="session-closed",
        zxid=zxid,
        session=number,
        reason=reason,
    )
    return [closed, znode(zxid, number, "/controller", zk_op="delete", seq=1)]


def elected(time: int, node: int, zxid: int, number: int, epoch: int = 2) -> Event:
    """Return what the winner of an election traces."""
    return broker(
        time, node, "controller-elected", controller_epoch=epoch, session=number, zxid=zxid
    )


BEGUN: Final = (configured(), joined(1, 1, 10), joined(1, 2, 20), grant(2, 10, 1, 1))
"""Broker 1 is the controller, broker 2 can become it. The bound is 4 ms."""
_LATE: Final = (*BEGUN, gone(3, 10), session(2, 1, "expired", 10), grant(4, 20, 2, 2))
_KILLED: Final = fault(2, 19, fault="kill-controller", targets=["broker-1"])

CONTROLLER_ELECTED_IN_TIME: Final = (
    history(*_LATE, elected(20, 2, 4, 20), measured(21), END),
    history(
        *BEGUN,
        gone(3, 10),
        _KILLED,
        started(19, 1, unclean=False),
        session(20, 1, "connected", 11),
        grant(4, 11, 1, 2),
        broker(21, 2, "control-request-handled", api="UpdateMetadata", error="NONE"),
        measured(22),
        END,
    ),
    history(
        *BEGUN,
        znode(3, 10, "/controller", zk_op="delete"),
        broker(2, 1, "leader-elected", zxid=3),
        grant(4, 20, 2, 2),
        elected(19, 2, 4, 20),
        measured(21),
        END,
    ),
    history(
        *BEGUN,
        gone(3, 10),
        session(2, 1, "expired", 10),
        fault(3, 8, fault="partition", targets=["broker-1"]),
        joined(18, 3, 30),
        grant(4, 30, 3, 2),
        broker(19, 2, "control-request-handled", api="UpdateMetadata", error="NONE"),
        measured(20),
        END,
    ),
    history(*_LATE, elected(150, 2, 4, 20), measured(151, load=145)),
    history(*_LATE, elected(150, 2, 4, 20)),
)

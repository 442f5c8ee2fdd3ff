"""The smallest histories in which the controller does not balance the leaders."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import broker, elected, grant, harness, history, state, znode
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.checkers.breaks.notifications import finished
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    BALANCE_ENABLED,
    BALANCE_INTERVAL,
    BALANCE_PERCENTAGE,
)

STATE_PATH: Final = "/brokers/topics/t/partitions/0/state"


def balanced(*, enabled: bool = True, percentage: int = 10) -> list[Event]:
    """Return the events that state the settings of the balance; the interval is 1 s."""
    settings = {BALANCE_ENABLED: enabled, BALANCE_INTERVAL: 1, BALANCE_PERCENTAGE: percentage}
    return [
        harness(0, "broker-property", setting=name, count=int(value))
        for name, value in settings.items()
    ]


def assigned(zxid: int, data: str = '{"partitions":{"0":[1,2]}}', zk_op: str = "create") -> Event:
    """Return the creation of topic t; its partition 0 prefers broker 1."""
    return znode(zxid, 10, "/brokers/topics/t", topic="t", data=data, zk_op=zk_op)


def registered(zxid: int, node: int, zk_op: str = "create") -> Event:
    """Return the registration of a broker, or its end."""
    return znode(zxid, 10 * node, f"/brokers/ids/{node}", zk_op=zk_op, node=node)


def led_by(time: int, zxid: int, leader: int, isr: list[int], epoch: int = 1) -> list[Event]:
    """Return the write of the state of t-0 by controller 1, traced at this time."""
    return [
        broker(time, 1, "znode-attempt", path=STATE_PATH, controller_epoch=1, zk_op="setData"),
        state(zxid, 10, leader, epoch, isr),
        broker(time, 1, "znode-outcome", path=STATE_PATH, controller_epoch=1, zxid=zxid),
        elected(time, zxid, leader, isr, leader_epoch=epoch, replicas=[1, 2]),
    ]


def end(time: int) -> Event:
    """Return the end of the run."""
    return harness(time, "phase", phase="end")


BEGUN: Final = (
    configured(),
    balanced(),
    grant(1, 10, 1, 1),
    registered(2, 1),
    registered(3, 2),
    assigned(4),
    finished(1, 1),
)
"""A session may be silent for 4 ms, so the first look is done at 5,005 ms, and each other one within 1,004 ms."""
WAITS: Final = led_by(2, 5, 2, [1, 2])
"""Broker 2 leads t-0."""

LEADERS_BALANCED: Final = (
    history(*BEGUN, WAITS, measured(6_000), end(6_000)),
    history(*BEGUN, WAITS, led_by(7_000, 6, 1, [1, 2], 2), measured(7_100), end(7_100)),
    history(*BEGUN, WAITS, fault(5_500, 6_000), measured(7_200), end(7_200)),
    history(*BEGUN, WAITS, measured(6_000, load=995), end(6_000)),
)

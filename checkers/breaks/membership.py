"""The smallest histories in which a coordinator forgets a member whose session goes on."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import harness, history
from nemesis.checkers.breaks.groups import commit, joined, loaded, request, static
from nemesis.history.events import Event

TIME_OUTS: Final = {"session.timeout.ms": 300, "max.poll.interval.ms": 400}
UNKNOWN: Final = {"kind": "fail", "error": "UNKNOWN_MEMBER_ID"}
FENCED: Final = {"kind": "fail", "error": "FENCED_INSTANCE_ID"}


def configured() -> list[Event]:
    """Return the events that state the time-outs."""
    return [
        harness(0, "timeout-setting", setting=name, duration_ms=ms)
        for name, ms in TIME_OUTS.items()
    ]


def member(time: int, *, name: str = "a", taking_over: bool = False) -> list[Event]:
    """A member joins generation 1 on broker 1, has its assignment and commits."""
    join = joined(time, 1, 1, member=name)
    if taking_over:
        join[0].member = None
    return [
        *join,
        *request(time + 2, "sync-group", 1, 1, member=name),
        *commit(time + 4, 1, 1, time, member=name),
    ]


def refused(time: int, node: int, f: str = "heartbeat", **columns: Any) -> list[Event]:
    return request(time, f, node, 1, **{**UNKNOWN, **columns})


MEMBERSHIP_KEPT: Final = (
    history(configured(), member(1), refused(10, 1)),
    history(configured(), member(1), commit(10, 2, 1, 9, member="b"), refused(20, 2)),
    history(
        configured(),
        static(member(1)),
        static(member(10, name="b", taking_over=True)),
        loaded(20, 2),
        static(refused(30, 2, member="b", **FENCED)),
        commit(40, 2, 1, 40, member="c"),
    ),
)

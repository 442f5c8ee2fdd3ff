"""The smallest histories in which a broker leaves a request without an answer."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import client, harness, history
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.history.events import NO_ANSWER, Event


def unanswered(time: int, f: str, waited_ms: int, process: str = "client-0") -> list[Event]:
    """Return an operation whose client waited for its answer until this time."""
    about = {"value": 5} if f == "send" else {}
    answer = {"error": NO_ANSWER, "duration_ms": waited_ms}
    return [
        client(time - waited_ms, process, "invoke", f, 1, **about),
        client(time, process, "info", f, 1, **about, **answer),
    ]


def over(time: int, load: int = 0) -> list[Event]:
    """Return the end of a run whose machine was measured."""
    return [*measured(time, load=load), harness(time, "phase", phase="end")]


STARTED: Final = harness(0, "phase", phase="start")

REQUESTS_ANSWERED: Final = (
    history(STARTED, unanswered(1500, "poll", 1500), over(2000)),
    history(STARTED, unanswered(1500, "send", 1500), over(2000)),
    history(STARTED, fault(100, 500), unanswered(2000, "metadata", 1000), over(2500)),
    history(STARTED, unanswered(1500, "poll", 1500), over(2000, load=1500)),
)

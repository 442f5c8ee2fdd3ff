"""How long a simulation may take in real time before it counts as hung, and what ends it then.

Virtual time cannot tell: it stands still while anything computes. A timer of the operating system ends the work the
way Ctrl-C does, wherever it is, so what was recorded until then can still be written.

Limits: work in another thread than the main one is not limited, as signals do not come there. C code that never
returns is not ended. The workers of ``nemesis.searching.explore.pool`` have limits of their own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Final, NoReturn

from nemesis.scenarios.scenario import Scenario
from nemesis.support.errors import HarnessError

LEAST_LIMIT_S: Final = 300.0
LIMIT_FACTOR: Final = 5.0
"""A run may take so many times its simulated time before it counts as hung; it should take a small part of it."""
AGAIN_S: Final = 10.0
"""A strike that was lost, in a finalizer for instance, is repeated."""


class StillAtWork(HarnessError):
    """The block was not over in time. Its cause has the stack of where it was."""


def limit_s(scenario: Scenario, *, runs: int = 1) -> float:
    """Return the wall-clock seconds that so many simulated runs of this scenario may take."""
    phases = scenario.phases
    simulated_s = scenario.time_limit_s + phases.quiet_s + phases.final_reads_s
    return max(LEAST_LIMIT_S, LIMIT_FACTOR * runs * (simulated_s + phases.convergence_s))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End the block after so many wall-clock seconds; raises ``StillAtWork`` then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, _strike)
    begin = monotonic()
    others_s, others_interval_s = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _Struck as struck:
        raise StillAtWork(f"the simulation was still at work after {seconds:g} s") from struck
    finally:
        signal.signal(signal.SIGALRM, handler)
        if others_s:  # somebody around us has a limit too: it goes on
            left_s = max(0.001, others_s - (monotonic() - begin))
            signal.setitimer(signal.ITIMER_REAL, left_s, others_interval_s)


class _Struck(KeyboardInterrupt):
    """Of this kind because nothing else leaves the tasks of a simulated process."""


def _strike(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Struck

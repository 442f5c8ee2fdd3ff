"""The end of a simulation: what dead processes left is taken down, and nobody hears of it.

Their coroutines were never to run again, but closing one runs its ``finally`` blocks; the ports of their lives are
fenced, so these do nothing, and what they raise is dropped. They may start tasks, which join the others.

What a run leaves is full of cycles. Python's collector looks for them once, when nothing holds the run any more: each
time before, it would walk through all that the run still holds.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nemesis.simulation.task import SimulationTask


def dispose(graves: list[SimulationTask], *, was_broken_off: bool) -> None:
    """Close the coroutine of every task, and of those that join meanwhile; the list is empty at the end.

    After a run that was broken off there are coroutines, too, that only other coroutines hold.
    """
    hook, sys.unraisablehook = sys.unraisablehook, _say_nothing
    try:
        while graves:
            _close(graves.pop())
        if was_broken_off:
            gc.collect()
    finally:
        sys.unraisablehook = hook


def _close(task: SimulationTask) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio sets it so, too
    try:
        task.home.run(task.get_coro().close)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001, S110 - whatever a dead process would have thought of it
        pass


def _say_nothing(_unraisable: object) -> None:
    """For the moment in which what is left of a run is taken down."""


@contextmanager
def collected_afterwards() -> Iterator[None]:
    """Within this there is no automatic garbage collection; what has come together is collected soon after."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

"""Carrying out a run: the event loop, Ctrl-C, progress, the log of the harness.

The first SIGINT or SIGTERM ends the run in order: the cluster is stopped, the record stays. Later
ones are ignored while that goes on, which is bounded; SIGKILL still works, and ``nemesis clean``
ends what it leaves.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import sys
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console

from nemesis.history.run_directory import RunDirectory
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.running.preflight import RunRequest
from nemesis.running.progress import Progress
from nemesis.running.record import FileRecord
from nemesis.running.run import Run
from nemesis.running.simulated.run import simulate_into
from nemesis.running.simulated.wall_clock_limit import StillAtWork
from nemesis.support.errors import HarnessError, MissingRequirement, UsageError
from nemesis.support.interrupts import Interrupted, terminable
from nemesis.support.paths import short

LOG_FILE = "harness.log"
BEFORE_THE_CLUSTER = ["start"]
"""The phases of a run that did not begin."""

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""What the kernel answers when a disk, or what this user may have of it, is full."""

_logger = logging.getLogger("nemesis")


class _HarnessLog(logging.FileHandler):
    """The log of the harness. Lines that a full disk does not take are dropped: the command reports the disk."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exception()
        if not (isinstance(error, OSError) and error.errno in FULL):
            super().handleError(record)

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            if error.errno not in FULL:
                raise


def launch(
    request: RunRequest,
    directory: RunDirectory,
    console: Console,
    *,
    on_faults_over: Callable[[], None] = lambda: None,
) -> None:
    """Run it to its end, in real time or in virtual; blocks.

    A run in real time calls ``on_faults_over`` once, when the faults' time has ended.

    Raises ``Interrupted`` after Ctrl-C, ``RuntimeFailure`` or ``HarnessError`` when the harness failed, or when a
    simulation takes too much real time, and ``MissingRequirement`` when this machine did not let the cluster begin:
    then nothing is left of the directory either. The cluster is stopped in any case.
    """
    handler = _HarnessLog(directory.logs / LOG_FILE, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with Progress(console) as progress:
            if request.is_simulated:
                with terminable():
                    simulate_into(directory, request.simulation(), progress.show)
                return
            run = Run(
                FileRecord(directory, time.monotonic_ns),
                request.scenario,
                seed=request.seed,
                plan=request.plan,
                runtime=request.runtime(directory.path),
                epoch_ms=time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000,
                show=progress.show,
                on_faults_over=on_faults_over,
            )
            interrupted = asyncio.run(_execute(run))
        if interrupted:
            raise Interrupted(
                f"interrupted: the cluster is stopped, what was recorded is kept, "
                f"`nemesis check {short(directory.path)}` judges it"
            )
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted: what happened until then is kept, `nemesis check {short(directory.path)}` judges it"
        ) from None
    except Interrupted:
        raise
    except MissingRequirement as error:
        if directory.read_info().phases != BEFORE_THE_CLUSTER:  # it was there, and went
            _logger.exception("the run failed")
            raise HarnessError(str(error)) from error
        directory.discard()
        raise
    except StillAtWork as error:
        _logger.exception("the run was ended")
        raise HarnessError(
            f"{error}: where it was is in {short(directory.logs / LOG_FILE)}, what happened until then is kept, "
            f"`nemesis check {short(directory.path)}` judges it"
        ) from error
    except (RuntimeFailure, HarnessError, UsageError):
        _logger.exception("the run failed")
        raise
    except Exception as error:
        _logger.exception("the run failed")
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        raise HarnessError(
            f"the harness failed ({type(error).__name__}): the stack trace is in "
            f"{short(directory.logs / LOG_FILE)}"
        ) from error
    finally:
        root.removeHandler(handler)
        handler.close()


async def _execute(run: Run) -> bool:
    """Return whether the run was interrupted."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(run.execute(), name="run")
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if not interrupted:
            raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return interrupted

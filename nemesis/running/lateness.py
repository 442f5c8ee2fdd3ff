"""How late a run may be for reasons that are not the cluster's: this loop's own delay, and what the machine did.

A recovery is a chain: at every moment the cluster waits for a configured time-out, or a process computes, or a task
that should compute waits for a processor, a disk or memory. So the processor time of all processors and the time in
which some task waited bound, together, what the machine can have added to the time-outs. Both come from Linux
(``proc(5)``: ``/proc/stat``; the kernel's ``Documentation/accounting/psi``: ``/proc/pressure``) and count everything on
the machine, in containers, too. The kernel weights waits by processor, so it counts a wait for less than it lasted
while other processors compute; that time of theirs is in the sum, in full. Where the figures cannot be read, nothing is
recorded of them, and no check may blame the cluster.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder

REPORT_INTERVAL_S: Final = 1.0
PROC: Final = Path("/proc")
_WAITED_FOR: Final = ("cpu", "io", "memory")
_BUSY: Final = (0, 1, 2, 5, 6, 7)
"""user, nice, system, irq, softirq and steal, of the numbers in the first line of ``/proc/stat``."""

Load = Callable[[], float | None]
"""Milliseconds since any fixed time, in which the machine computed or some task waited for it; None: unknown."""


async def trace_lateness(recorder: Recorder, load: Load, probe_s: float) -> None:
    """Record once a second how late this loop was and what the machine did, until cancelled.

    ``probe_s``: how often the loop is looked at, in seconds.
    """
    loop = asyncio.get_running_loop()
    worst_s, reported, load_before = 0.0, loop.time(), load()
    while True:
        before = loop.time()
        await asyncio.sleep(probe_s)
        now = loop.time()
        worst_s = max(worst_s, now - before - probe_s)
        if now - reported < REPORT_INTERVAL_S:
            continue
        recorder.record(Kind.HARNESS_LAG, duration_ms=round(worst_s * 1000))
        load_now = load()
        if load_now is not None and load_before is not None:
            recorder.record(Kind.MACHINE_LOAD, duration_ms=round(load_now - load_before))
        worst_s, reported = 0.0, now
        if load_now is not None:
            load_before = load_now  # unknown: the next report covers this time, too


def machine_load(proc: Path = PROC) -> float | None:
    """Return the milliseconds since the boot in which this machine computed or a task waited; None if unknown."""
    try:
        ticks = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
        pressure = [(proc / "pressure" / name).read_text() for name in _WAITED_FOR]
        busy_s = sum(int(ticks[index]) for index in _BUSY) / os.sysconf("SC_CLK_TCK")
        return 1000 * busy_s + sum(_waited_us(text) for text in pressure) / 1000
    except (OSError, ValueError, IndexError):
        return None


def no_load() -> float:
    """Return 0: virtual time passes only between computations."""
    return 0.0


def _waited_us(pressure: str) -> int:
    """The microseconds in which some task waited: ``some avg10=0.00 avg60=0.00 avg300=0.00 total=0``."""
    return int(pressure.split("\n", 1)[0].rpartition("total=")[2])

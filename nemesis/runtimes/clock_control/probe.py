"""What a node's wall clock says: asked of a fresh process that has the node's library and control page.

The process prints its wall clock twice, some time apart, each time between two looks at the monotonic clock. That clock
is one for all processes of a machine, so how far the wall clock is ahead does not depend on how long the answer took.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.clock_control.library import environment

TIMEOUT_S: Final = 15.0
"""A Python starts in some hundredths of a second; only a starved machine needs longer."""

TRIES: Final = 20
"""Of them the one counts that was interrupted the least."""

APART_S: Final = 0.1

PROGRAM: Final = f"""
import time
def look():
    looks = ((time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range({TRIES}))
    return min(looks, key=lambda look: look[2] - look[0])
first = look()
time.sleep({APART_S})
print(*first, *look())
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """The wall clock, in nanoseconds since 1970, at a moment of the monotonic clock."""

    at_ns: int
    wall_ns: int

    @property
    def ahead_of_monotonic_ns(self) -> int:
        return self.wall_ns - self.at_ns


@dataclass(frozen=True, slots=True)
class ClockState:
    """How far a clock is ahead of true time at a moment, and the seconds that it gains in each."""

    at_ns: int
    offset_ns: float
    drift: float

    def offset_ms_at(self, time_ns: int) -> float:
        """Return how far it was ahead at another moment, its drift being the same."""
        return (self.offset_ns + self.drift * (time_ns - self.at_ns)) / 1e6


async def ask(library: Path, page: Path) -> ClockState:
    """Return what a process with this library and page sees; raises ``RuntimeFailure`` when none can be asked."""
    command = [sys.executable, "-S", "-E", "-c", PROGRAM]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment(library, page),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise RuntimeFailure(f"the clock {page.name} cannot be asked: {error}") from None
    try:
        said, complaint = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    except TimeoutError:
        raise RuntimeFailure(f"the clock {page.name} did not answer in {TIMEOUT_S:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        words = complaint.decode(errors="replace").strip()
        raise RuntimeFailure(f"the clock {page.name} cannot be asked: {words}")
    return state(said.decode(), true=look())


def look() -> Reading:
    """Return what this process's own wall clock says: true time."""
    before_ns, wall_ns, after_ns = min(
        ((time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(TRIES)),
        key=lambda look: look[2] - look[0],
    )
    return Reading((before_ns + after_ns) // 2, wall_ns)


def state(said: str, *, true: Reading) -> ClockState:
    """Return what the two looks that the probe printed say, compared with true time."""
    before_1, wall_1, after_1, before_2, wall_2, after_2 = map(int, said.split())
    first = Reading((before_1 + after_1) // 2, wall_1)
    second = Reading((before_2 + after_2) // 2, wall_2)
    return ClockState(
        at_ns=first.at_ns,
        offset_ns=first.ahead_of_monotonic_ns - true.ahead_of_monotonic_ns,
        drift=(second.ahead_of_monotonic_ns - first.ahead_of_monotonic_ns)
        / (second.at_ns - first.at_ns),
    )

"""A forked process for each piece of work, which may hang, take all memory or die without harm to the others.

The parent has imported everything and has never simulated. So a child starts in milliseconds, and finds no memo table
that an earlier run has filled: such a table could hide a mutant. The parent ends a child with SIGKILL, its own one
and no other, when it has used too much processor time, wall-clock time or memory. Processor time comes first: how
loaded the machine is then does not decide what counts as a hang.

Not ``nemesis.searching.explore.pool``: its workers are spawned and keep what earlier tasks left, which is faster for
many seeds of the same code.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Final, Generic, TypeVar

import psutil

Result = TypeVar("Result")

LOOK_INTERVAL_S: Final = 0.5
JOIN_TIMEOUT_S: Final = 10.0
_context = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one piece of work may use."""

    cpu_s: float = 120.0
    """Processor time."""
    wall_s: float = 900.0
    memory_bytes: int = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Ended(Generic[Result]):
    """How a piece of work ended."""

    result: Result | None
    """None: it did not come to its end."""
    error: str = ""
    """What it raised, or how its process ended."""
    is_hung: bool = False
    """It was ended because it had used too much time."""


class Child(Generic[Result]):
    """One forked process at work."""

    def __init__(self, work: Callable[[], Result], limits: Limits) -> None:
        """Start it. Its result is pickled; what it prints is dropped."""
        self._limits = limits
        self.pipe, other_end = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_work, args=(work, other_end), daemon=True)
        self._process.start()
        other_end.close()
        self._deadline = monotonic() + limits.wall_s

    def look(self) -> Ended[Result] | None:
        """Return how it ended, None while it is at work. Ends it when it has used too much."""
        if self.pipe.poll():
            return self._received()
        used = self._too_much()
        if used is None:
            return None
        self.end()
        return Ended(None, used, is_hung="memory" not in used)

    def end(self) -> None:
        """SIGKILL this process, if it is still there."""
        self._process.kill()
        self._process.join(JOIN_TIMEOUT_S)
        self.pipe.close()

    def _received(self) -> Ended[Result]:
        try:
            ended: Ended[Result] = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(JOIN_TIMEOUT_S)
            ended = Ended(None, f"its process ended with {self._process.exitcode}")
        self.end()
        return ended

    def _too_much(self) -> str | None:
        try:
            process = psutil.Process(self._process.pid)
            cpu, memory_bytes = process.cpu_times(), process.memory_info().rss
        except psutil.Error:
            return None  # it has just ended: the pipe reports how
        if cpu.user + cpu.system > self._limits.cpu_s:
            return f"still at work after {self._limits.cpu_s:g} s of processor time"
        if monotonic() > self._deadline:
            return f"still at work after {self._limits.wall_s:g} s"
        if memory_bytes > self._limits.memory_bytes:
            return f"took more than {self._limits.memory_bytes / 2**30:g} GiB of memory"
        return None


def _work(work: Callable[[], Result], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    ended: Ended[Result]
    try:
        ended = Ended(work())
    except Exception as error:  # noqa: BLE001 - the parent decides what it means
        ended = Ended(None, f"{type(error).__name__}: {' '.join(str(error).split())}")
    pipe.send(ended)
    pipe.close()
    os._exit(0)  # what a simulation leaves needs no disposal


Key = TypeVar("Key")


class Children(Generic[Key]):
    """Several processes at work at the same time; leaving the block ends those that are."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._at_work: dict[Key, Child[object]] = {}

    def __enter__(self) -> Children[Key]:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._at_work.values():
            child.end()
        self._at_work.clear()

    def __len__(self) -> int:
        return len(self._at_work)

    def start(self, key: Key, work: Callable[[], object]) -> None:
        """Begin a piece of work."""
        self._at_work[key] = Child(work, self._limits)

    def ended(self) -> Iterator[tuple[Key, Ended[object]]]:
        """Wait a little, then yield what has ended."""
        wait([child.pipe for child in self._at_work.values()], timeout=LOOK_INTERVAL_S)
        for key, child in list(self._at_work.items()):
            ended = child.look()
            if ended is not None:
                del self._at_work[key]
                yield key, ended

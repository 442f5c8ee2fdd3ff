"""Worker processes, one task at a time each: a task that takes its worker down is lost for nobody.

``Pool.run`` takes tasks one by one from an iterator, hands each to a free worker, and yields what came of it as it
comes: ``Finished`` with the result, or ``Crashed`` with the reason. A worker that raises, dies, hangs beyond the
task's time limit or takes too much memory is replaced; its task is ``Crashed``, once, and not tried again.

Workers are spawned, not forked, so that each is a fresh interpreter with its own hash seed. Each is replaced
quietly when it has grown beyond half of its memory limit: what a simulation leaves behind must not add up.
Workers never see Ctrl-C, which is the parent's to answer, and end when the parent's end of their pipe is gone. At the
end they are asked with SIGTERM, which ``nemesis.support.interrupts.unbroken`` puts off, so that what is being
written is whole.

A worker's standard error goes to a file, whose end comes with the crash; its last line is part of the reason when the
worker dies. A worker that hangs says there where it is before it is ended.

Limits: memory is looked at once a second, so a worker may exceed it for that long. Results travel through a pipe
and are pickled: keep them small.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import psutil

from nemesis.support.interrupts import unheard_by_children

Task = TypeVar("Task")
Result = TypeVar("Result")

LOOK_INTERVAL_S: Final = 1.0
MEMORY_LIMIT_BYTES: Final = 3 * 2**30
JOIN_TIMEOUT_S: Final = 5.0
WRITE_TIMEOUT_S: Final = 20.0
"""To store a run takes a few seconds."""
SAY_WHERE: Final = signal.SIGUSR1
SAY_WHERE_TIMEOUT_S: Final = 0.5
OUTPUT_KEPT: Final = 8_000
"""Characters."""

_context = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Finished(Generic[Task, Result]):
    task: Task
    result: Result


@dataclass(frozen=True, slots=True)
class Crashed(Generic[Task]):
    task: Task
    reason: str
    """One line: what ended the task."""
    trace: str = ""
    """The stack trace, when an exception ended it."""
    output: str = ""
    """The end of what the worker wrote to its standard error during this task."""


class Pool(Generic[Task, Result]):
    """Use it as a context manager; leaving it ends every worker, those that write as soon as they have written."""

    def __init__(
        self,
        work: Callable[[Task], Result],
        *,
        jobs: int,
        limit_s: float,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> None:
        """``work`` must be importable; ``limit_s`` is the wall-clock time of one task."""
        self._work = work
        self._jobs = jobs
        self._limit_s = limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._workers: list[_Worker[Task, Result]] = []
        self._logs = tempfile.TemporaryDirectory(prefix="nemesis-pool-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.dismiss()
        deadline = monotonic() + WRITE_TIMEOUT_S
        for worker in self._workers:
            worker.end(patience_s=deadline - monotonic())
        self._workers.clear()
        self._logs.cleanup()

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished[Task, Result] | Crashed[Task]]:
        """Yield what came of each task, in the order of their ends. A task is taken when a worker is free for it."""
        is_drained = False
        while True:
            while not is_drained and self._has_room():
                try:
                    task = next(tasks)
                except StopIteration:
                    is_drained = True
                else:
                    self._free().give(task)
            busy = [worker for worker in self._workers if worker.is_busy]
            if not busy:
                return
            wait([worker.pipe for worker in busy], timeout=self._patience_s(busy))
            for worker in busy:
                if (done := worker.look(self._memory_limit_bytes)) is not None:
                    self._replace_if_worn(worker)
                    yield done

    def _has_room(self) -> bool:
        return sum(worker.is_busy for worker in self._workers) < self._jobs

    def _free(self) -> _Worker[Task, Result]:
        """Return a worker that is free, a new one when none is; called when there is room."""
        for worker in self._workers:
            if not worker.is_busy:
                return worker
        worker = _Worker(self._work, self._limit_s, Path(self._logs.name))
        self._workers.append(worker)
        return worker

    def _replace_if_worn(self, worker: _Worker[Task, Result]) -> None:
        if not worker.is_alive or worker.rss_bytes() > self._memory_limit_bytes // 2:
            worker.end()
            self._workers.remove(worker)

    def _patience_s(self, busy: list[_Worker[Task, Result]]) -> float:
        next_deadline = min(worker.deadline for worker in busy)
        return max(0.0, min(LOOK_INTERVAL_S, next_deadline - monotonic()))


class _Worker(Generic[Task, Result]):
    """A process and its task."""

    def __init__(self, work: Callable[[Task], Result], limit_s: float, logs: Path) -> None:
        descriptor, name = tempfile.mkstemp(dir=logs, prefix="worker-", suffix=".log")
        os.close(descriptor)
        self._log = Path(name)
        self._limit_s = limit_s
        self.pipe, workers_end = _context.Pipe()
        self._process = _context.Process(
            target=_serve, args=(work, workers_end, name), daemon=True, name="nemesis-worker"
        )
        resource_tracker.ensure_running()  # started with the first worker, it would unblock Ctrl-C
        with unheard_by_children():
            self._process.start()
        workers_end.close()
        self._task: list[Task] = []
        self.deadline = 0.0
        self.is_alive = True

    @property
    def is_busy(self) -> bool:
        return bool(self._task)

    def give(self, task: Task) -> None:
        """Hand a task to this worker, which is free."""
        self._task = [task]
        self.deadline = monotonic() + self._limit_s
        try:
            self.pipe.send(task)
        except OSError:
            self.is_alive = False  # it died between two tasks; ``look`` says how

    def look(self, memory_limit_bytes: int) -> Finished[Task, Result] | Crashed[Task] | None:
        """Return what came of the task, None while it is at work. Ends the worker when the task has to end."""
        [task] = self._task
        done: Finished[Task, Result] | Crashed[Task] | None = None
        if not self.is_alive:
            done = self._died(task)
        elif self.pipe.poll():
            done = self._receive(task)
        elif monotonic() >= self.deadline:
            self._ask_where()
            done = self._crashed(task, f"still at work after {self._limit_s:g} s")
            self.end()
        elif self.rss_bytes() > memory_limit_bytes:
            used = f"took more than {memory_limit_bytes / 2**30:.1f} GiB of memory"
            done = self._crashed(task, used)
            self.end()
        if done is not None:
            self._task = []
        return done

    def rss_bytes(self) -> int:
        """Return its resident memory; 0 when it is gone."""
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def dismiss(self) -> None:
        """Ask it to end; it does at once, or when it has written what it is writing."""
        self.is_alive = False
        self.pipe.close()
        self._process.terminate()

    def end(self, patience_s: float = 0.0) -> None:
        """Let it end by itself for so long, then SIGKILL it: a worker has nothing to tidy up."""
        self.is_alive = False
        self._process.join(max(0.0, patience_s))
        self._process.kill()
        self._process.join(JOIN_TIMEOUT_S)
        self.pipe.close()

    def _receive(self, task: Task) -> Finished[Task, Result] | Crashed[Task]:
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self.is_alive = False
            return self._died(task)
        if isinstance(answer, _Raised):
            self.is_alive = False  # after an exception nobody knows what it left half done
            return self._crashed(task, answer.summary, answer.trace)
        return Finished(task, answer)

    def _ask_where(self) -> None:
        """Have the worker write its stack to its standard error, if it is able to."""
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, SAY_WHERE)
            self._process.join(SAY_WHERE_TIMEOUT_S)

    def _crashed(self, task: Task, reason: str, trace: str = "") -> Crashed[Task]:
        return Crashed(task, reason, trace, self._output())

    def _output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace").strip()[-OUTPUT_KEPT:]

    def _died(self, task: Task) -> Crashed[Task]:
        self._process.join(JOIN_TIMEOUT_S)
        code = self._process.exitcode
        if code is not None and code < 0:
            how = f"its process was ended by {signal.Signals(-code).name}"
        else:
            how = f"its process exited with code {code}"
        words = self._output().splitlines()
        return self._crashed(task, f"{how}: {words[-1].strip()}" if words else how)


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a worker answers instead of a result."""

    summary: str
    trace: str


def _serve(work: Callable[[Task], Result], pipe: Connection, log: str) -> None:
    """The life of a worker: tasks in, results out, until the parent's end of the pipe is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    faulthandler.register(SAY_WHERE, file=descriptor)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        os.ftruncate(descriptor, 0)
        try:
            answer: Result | _Raised = work(task)
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told
            text = " ".join(str(error).split())
            answer = _Raised(
                f"{type(error).__name__}: {text}" if text else type(error).__name__,
                traceback.format_exc(),
            )
        try:
            pipe.send(answer)
        except BrokenPipeError:
            return  # the parent is gone, nobody wants to know

"""An asyncio event loop on virtual time, for many processes in one thread.

Time stands still while anything can run, then jumps to the next deadline: a minute of a quiet cluster costs nothing.
Deadlines are a heap of (virtual seconds, count), so equal ones fire in the order in which they were set.

Each incarnation (``incarnation``) has its own first-in-first-out queue, as asyncio promises inside a process. The
incarnations that have something to run do so in the order in which they woke, each until it waits: how many steps it
takes in between, which differs between versions of asyncio, is then nothing to the others. A seeded ``Schedule``
deviates from that order: now and then an incarnation that is woken (by a timer, by bytes) stalls for some virtual
time, as a process does that gets no processor, while the others run on. One number is drawn per such wake whether
deviations are allowed or not, so that switching some off (to shrink a run) leaves the others' draws as they were.

Automatic garbage collection is off while the loop runs: a cycle's finalizers would run at moments that differ between
interpreters. What asyncio leaves to chance elsewhere is fixed in ``task`` (hashes, names of tasks).

An exception in a callback of the harness ends the run; one in an incarnation goes to the exception handler, as with
asyncio. When nothing can ever run again ``DeadlockError`` names the tasks that wait, and a million callbacks without
a moment passing are a ``LivelockError``.

Limits: computing takes no virtual time. No threads, no signals, no subprocesses, no sockets other than the network's.
"""

from __future__ import annotations

import asyncio
import gc
import math
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from nemesis.simulation.disposal import dispose
from nemesis.simulation.incarnation import CANCELLED, INCARNATION, Incarnation, SimulationHandle
from nemesis.simulation.randomness import stream
from nemesis.simulation.task import SimulationFuture, SimulationTask

if TYPE_CHECKING:
    from asyncio.events import AbstractServer

SHORTEST_STALL_S = 10e-6
LONGEST_STALL_S = 5e-3
LIVELOCK_CALLBACKS = 1_000_000
LEAST_COMPACTED = 1024
"""Cancelled timers are thrown out when the heap has at least so many entries, and twice as many as were left then."""


class DeadlockError(RuntimeError):
    """Nothing can ever run again, but the simulation is not done. A bug of the harness or of the code under it."""


class LivelockError(RuntimeError):
    """A million callbacks ran without virtual time passing: something waits by spinning."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which share of wakes is stalled, and until when (virtual seconds)."""

    seed: int = 0
    deviation_rate: float = 0.0
    deviate_until_s: float = math.inf


class Connector(Protocol):
    """What makes connections: the simulated network."""

    async def connect(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        address: tuple[str, int],
        local_address: tuple[str, int] | None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...

    async def listen(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str | None, port: int
    ) -> AbstractServer: ...

    def close(self) -> None: ...


class SimulationLoop(asyncio.BaseEventLoop):
    """The loop. Close it at the end: that disposes of the lives that are left, without running their ``finally``."""

    def __init__(self, schedule: Schedule | None = None) -> None:
        self._is_running = False
        super().__init__()
        self.set_debug(False)
        self._schedule = schedule or Schedule()
        self._draw = stream(self._schedule.seed, "schedule").random
        self.network: Connector | None = None
        self.harness = Incarnation("harness", "127.0.0.1", 0)
        """The queue of the code outside of the system; it belongs to no context."""
        self.deviations = 0
        """How many wakes were stalled."""
        self.callbacks = 0
        """How many callbacks ran."""
        self.now = 0.0
        """``time()`` without a call: virtual seconds since the loop was made."""
        self._last_ns = -1
        self._heap: list[tuple[float, int, SimulationHandle]] = []
        self._compact_at = LEAST_COMPACTED
        self._runnable: deque[Incarnation] = deque()
        self._numbers = 0
        self._task_names = 0
        self._failure: BaseException | None = None
        self._graves: list[SimulationTask] = []
        self._is_stopping = False

    # Time

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.now

    def clock_ns(self) -> int:
        """Virtual nanoseconds, never the same twice: an order of events."""
        self._last_ns = max(int(self.now * 1e9), self._last_ns + 1)
        return self._last_ns

    def next_number(self) -> int:
        """The next of the numbers that stand for addresses in hashes."""
        self._numbers += 1
        return self._numbers

    # Callbacks

    def call_soon(  # type: ignore[override]
        self, *call: Any, context: Context | None = None
    ) -> SimulationHandle:
        """Queue the call (a callback and its arguments) with the incarnation of its context."""
        if context is None:
            context = copy_context()
        incarnation = context.get(INCARNATION) or self.harness
        handle = SimulationHandle(call, context, incarnation)
        incarnation.ready.append(handle)
        if not incarnation.is_queued and not incarnation.is_stopped:
            incarnation.is_queued = True
            self._runnable.append(incarnation)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, *call: Any, context: Context | None = None
    ) -> SimulationHandle:
        """Queue the call when the virtual time has come."""
        if context is None:
            context = copy_context()
        incarnation = context.get(INCARNATION) or self.harness
        handle = SimulationHandle(call, context, incarnation, when)
        heap = self._heap
        if len(heap) >= self._compact_at:
            self._compact()
        self._numbers = number = self._numbers + 1
        heappush(heap, (when, number, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, *call: Any, context: Context | None = None
    ) -> SimulationHandle:
        """Queue the call after so many virtual seconds."""
        return self.call_at(self.now + delay, *call, context=context)

    def _compact(self) -> None:
        """Throw cancelled timers out of the heap."""
        self._heap[:] = [entry for entry in self._heap if entry[2].call is not CANCELLED]
        heapify(self._heap)
        self._compact_at = max(LEAST_COMPACTED, 2 * len(self._heap))

    def create_future(self) -> SimulationFuture:
        """A future that hashes the same in every run."""
        return SimulationFuture(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> SimulationTask:
        """A task of the context's incarnation. Names count per loop, not per process."""
        if name is None:
            self._task_names += 1
            name = f"Task-{self._task_names}"
        if context is None:
            context = copy_context()
        task = SimulationTask.__new__(SimulationTask)
        task.number = self.next_number()
        task.__init__(coro, loop=self, name=str(name), context=context, **options)  # type: ignore[misc]
        task.home = context
        incarnation = context.get(INCARNATION) or self.harness
        task.incarnation = incarnation
        if incarnation.is_dead:
            self._graves.append(task)
        return task

    # Lives

    def wake(self, incarnation: Incarnation) -> None:
        """Let an incarnation run if it has something to run and may."""
        if incarnation.ready and not incarnation.is_queued and not incarnation.is_stopped:
            incarnation.is_queued = True
            self._runnable.append(incarnation)

    def bury(self, incarnation: Incarnation) -> None:
        """Keep a dead incarnation's tasks to the end, so that nothing of them runs."""
        self._graves.extend(
            task for task in self._pending_tasks() if task.incarnation is incarnation
        )

    def fail(self, error: BaseException) -> None:
        """End the run with this error when the present callback returns, even if somebody swallows it there."""
        if self._failure is None:
            self._failure = error
        self._is_stopping = True

    def _pending_tasks(self) -> list[SimulationTask]:
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, SimulationTask)]
        return sorted(tasks, key=hash)

    # Running

    def is_running(self) -> bool:
        return self._is_running

    def stop(self) -> None:
        """End the run after the present batch of callbacks."""
        self._is_stopping = True

    def run_forever(self) -> None:
        """Run until ``stop``. Raises ``DeadlockError``, ``LivelockError`` and what the harness's callbacks raise."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        if self._is_running:
            raise RuntimeError("This event loop is already running")
        had_gc, hooks = gc.isenabled(), sys.get_asyncgen_hooks()
        gc.disable()
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._close_generator)
        self._is_running, self._is_stopping = True, False
        asyncio._set_running_loop(self)  # noqa: SLF001 - there for those who write loops
        try:
            self._run()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001
            self._is_running = self._is_stopping = False
            sys.set_asyncgen_hooks(*hooks)
            if had_gc:
                gc.enable()

    def _run(self) -> None:
        runnable, heap = self._runnable, self._heap
        quiet_at = self.callbacks
        while not self._is_stopping:
            if heap and heap[0][0] <= self.now:
                self._fire()
            if not runnable:
                self._jump()
                quiet_at = self.callbacks
                continue
            incarnation = runnable[0]  # it stays in front until it waits, is killed or paused
            if not incarnation.is_stopped:  # by somebody else, while it was in line
                self._run_batch(incarnation)
            if not incarnation.ready or incarnation.is_stopped:
                runnable.popleft()
                incarnation.is_queued = False
            if self.callbacks - quiet_at > LIVELOCK_CALLBACKS:
                self._raise_livelock(incarnation)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run_batch(self, incarnation: Incarnation) -> None:
        """Run what the incarnation's queue holds now, as one iteration of a real loop does."""
        ready = incarnation.ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            self.callbacks += 1
            try:
                handle.home.run(*handle.call)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if incarnation is self.harness:
                    raise
                self._report(incarnation, handle, error)
            if incarnation.is_stopped:
                break

    def _report(
        self, incarnation: Incarnation, handle: SimulationHandle, error: BaseException
    ) -> None:
        if isinstance(error, SystemExit):
            incarnation.leave(error)
            return
        message = {"message": f"Exception in callback {handle.call[0]!r}", "exception": error}
        handle.home.run(self.call_exception_handler, message)

    def _stall(self, incarnation: Incarnation, share: float) -> None:
        """Stop an incarnation for a time between the shortest and the longest, drawn evenly by magnitude."""
        self.deviations += 1
        stall_s = SHORTEST_STALL_S * (LONGEST_STALL_S / SHORTEST_STALL_S) ** share
        self.call_later(stall_s, self._end_stall, incarnation, context=Context())

    def _end_stall(self, incarnation: Incarnation) -> None:
        incarnation.is_queued = False
        self.wake(incarnation)

    def _fire(self) -> None:
        """Give every due timer to its incarnation, and draw whether an incarnation that this wakes stalls."""
        heap, now = self._heap, self.now
        while heap and heap[0][0] <= now:
            timer = heappop(heap)[2]
            if timer.call is CANCELLED:
                continue
            incarnation = timer.incarnation
            incarnation.ready.append(timer)
            if incarnation.is_queued or incarnation.is_stopped:
                continue
            incarnation.is_queued = True
            if incarnation is not self.harness:
                drawn, schedule = self._draw(), self._schedule
                if drawn < schedule.deviation_rate and now < schedule.deviate_until_s:
                    self._stall(incarnation, drawn / schedule.deviation_rate)
                    continue
            self._runnable.append(incarnation)

    def _jump(self) -> None:
        """Go to the next deadline of anybody who lives."""
        heap = self._heap
        while heap and (heap[0][2].call is CANCELLED or heap[0][2].incarnation.is_dead):
            heappop(heap)
        if not heap:
            self._raise_deadlock()
        self.now = max(self.now, heap[0][0])

    def _raise_deadlock(self) -> NoReturn:
        waiting = [
            f"{task.incarnation.node}: {task.get_name()} in {getattr(task.get_coro(), '__qualname__', '?')}"
            for task in self._pending_tasks()
            if not task.incarnation.is_dead
        ]
        listed = "; ".join(waiting) or "no task at all"
        raise DeadlockError(f"nothing can run at {self.now:.6f} s; waiting: {listed}")

    def _raise_livelock(self, incarnation: Incarnation) -> NoReturn:
        next_up = [repr(handle) for handle in list(incarnation.ready)[:3]]
        raise LivelockError(
            f"{LIVELOCK_CALLBACKS} callbacks at {self.now:.6f} s; {incarnation.node} runs {next_up}"
        )

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed():
            self.create_task(generator.aclose())

    # The end

    def close(self) -> None:
        """Dispose of everything that is left: what its ``finally`` blocks do is fenced, what they raise dropped."""
        if self.is_closed() or self._is_running:
            super().close()
            return
        was_broken_off = not self.harness.is_dead and any(
            task.incarnation is self.harness for task in self._pending_tasks()
        )
        for task in self._pending_tasks():
            if not task.incarnation.is_dead:
                task.incarnation.is_dead = task.incarnation.is_stopped = True
                self.bury(task.incarnation)
        if self.network is not None:
            self.network.close()
        dispose(self._graves, was_broken_off=was_broken_off)
        super().close()
        self._heap.clear()
        self._runnable.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """As with asyncio, but nothing is said of what is disposed of at the end."""
        if not self.harness.is_dead:
            super().call_exception_handler(context)

    # Connections

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        local_addr: tuple[str, int] | None = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect through the simulated network; ``local_addr`` says which host calls."""
        _refuse_options(options)
        return await self._connector().connect(protocol_factory, (host, port), local_addr)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        *,
        backlog: int = 0,  # noqa: ARG002 - here it has no bound
        **options: Any,
    ) -> AbstractServer:
        """Listen on the simulated network."""
        _refuse_options(options)
        return await self._connector().listen(protocol_factory, host, port)

    def remove_reader(self, fd: Any) -> bool:  # noqa: ARG002
        """Return False: nothing is read from a simulated socket, which gets its connections in one step."""
        return False

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]  # noqa: ARG002
        """Raises RuntimeError: there are no threads here."""
        raise RuntimeError("a simulation has no threads")

    def _connector(self) -> Connector:
        if self.network is None:
            raise RuntimeError("this loop has no network; make a Network on it first")
        return self.network


def _refuse_options(options: dict[str, Any]) -> None:
    wanted = sorted(name for name, value in options.items() if value is not None)
    if wanted:
        raise NotImplementedError(f"the simulated network has no {', '.join(wanted)}")

"""The client processes of a workload: each can be killed, paused, resumed and started again while the run lasts.

A process is a task. Its code takes steps: each from one ``await`` to the next. A paused process takes no step, as after
SIGSTOP: it sends nothing, and what arrives for it waits, like the end of a time-out. When it is resumed it goes on
where it was, with what it believed then. A killed process has its connections closed by its host, and its task
cancelled: the operations in flight are recorded as ``info``. A process that starts again has a new client.

A process may be several tasks: those that it begins itself take part in a pause if their coroutines are ``held``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeVar

from nemesis.workloads.kafka.frames import Traffic

Program = Callable[[], Coroutine[Any, Any, None]]
"""Begins a process: returns what its task runs."""
CLOSED_WITHIN_S: Final = 2.0
"""How long the end of a killed process may take."""
_LOOK_S: Final = 0.01
_T = TypeVar("_T")


class ClientState(NamedTuple):
    """What can be seen of a process."""

    is_alive: bool
    """Whether its task has not ended; a paused process is alive."""
    is_paused: bool
    """Whether a step of it is held, or would be."""
    steps: int
    """How many steps the processes of this name have taken."""
    frames: int
    """How many frames they have sent."""
    connections: int
    """How many connections are open."""


class Gate:
    """Holds the steps of a process while it is closed."""

    def __init__(self) -> None:
        self.steps = 0
        self.held = 0
        """How many tasks wait for it to open."""
        self._opened = asyncio.Event()
        self._opened.set()

    @property
    def is_closed(self) -> bool:
        return not self._opened.is_set()

    def close(self) -> None:
        self._opened.clear()

    def open(self) -> None:
        self._opened.set()

    def passed(self) -> Generator[Any, Any, BaseException | None]:
        """Wait while the gate is closed; return what was thrown meanwhile, such as a cancellation."""
        thrown: BaseException | None = None
        while self.is_closed:
            self.held += 1
            try:
                yield from self._opened.wait().__await__()
            except asyncio.CancelledError as error:
                thrown = error
            finally:
                self.held -= 1
        return thrown


_GATE: ContextVar[Gate | None] = ContextVar("gate", default=None)
"""The gate of the process whose code runs."""


class _Steps:
    """Takes the steps of a coroutine, each when the gate is open."""

    def __init__(self, coroutine: Coroutine[Any, Any, _T], gate: Gate) -> None:
        self._coroutine = coroutine
        self._gate = gate

    def __await__(self) -> Generator[Any, Any, Any]:
        thrown: BaseException | None = None
        while True:
            thrown = (yield from self._gate.passed()) or thrown
            self._gate.steps += 1
            try:
                awaited = (
                    self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
                )
            except StopIteration as end:
                return end.value
            thrown = None
            try:
                yield awaited
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - a future's error, or a cancellation: the coroutine's to handle
                thrown = error


async def held(coroutine: Coroutine[Any, Any, _T], gate: Gate | None = None) -> _T:
    """Run a coroutine of a process, which takes no step while the process is paused.

    ``gate`` is that of the process whose code calls, unless another one is given.
    """
    if gate is not None:
        _GATE.set(gate)
    known = _GATE.get()
    if known is None:
        return await coroutine
    result: _T = await _Steps(coroutine, known)
    return result


class _Process(NamedTuple):
    """One process from its start to its end."""

    task: asyncio.Task[None]
    gate: Gate


class ClientTable:
    """The processes of a workload by their names.

    ``programs`` begins each process. ``leaders`` returns for each group of consumers the name of the process whose
    member leads the newest generation.
    """

    def __init__(
        self,
        programs: Callable[[], Iterable[tuple[str, Program]]],
        *,
        groups: Sequence[str],
        leader: Callable[[str], str | None],
    ) -> None:
        self._programs = programs
        self._leader = leader
        self.groups = tuple(groups)
        """The groups of consumers to which processes belong."""
        self._running: dict[str, _Process] = {}
        self._ended: list[asyncio.Task[None]] = []
        self._traffic: defaultdict[str, Traffic] = defaultdict(Traffic)
        self._steps: defaultdict[str, int] = defaultdict(int)
        """Of the ended processes of a name: how many steps they took."""
        self._newest: defaultdict[str, int] = defaultdict(int)
        self._passed: defaultdict[str, int] = defaultdict(int)

    @property
    def names(self) -> list[str]:
        """The names of all processes, also before they are started."""
        return [name for name, _ in self._programs()]

    @property
    def is_started(self) -> bool:
        return bool(self._running)

    def traffic(self, name: str) -> Traffic:
        """Return what the processes of this name do, and other clients under this name."""
        return self._traffic[name]

    def numbered(self, permits: Callable[[str, int], bool]) -> Callable[[str, int], bool]:
        """Return ``permits`` for processes that count from the beginning again when they are started again.

        No two operations of a run have the same number, so a subset of them can be named.
        """

        def numbered(process: str, step: int) -> bool:
            number = self._passed[process] + step
            self._newest[process] = max(self._newest[process], number)
            return permits(process, number)

        return numbered

    def start_all(self) -> None:
        """Start every process."""
        for name, program in self._programs():
            self._start(name, program)

    def start(self, name: str) -> None:
        """Start a killed process again, under its name and with a new client."""
        assert not self.state(name).is_alive
        ended = self._running.pop(name)
        self._ended.append(ended.task)
        self._steps[name] += ended.gate.steps
        self._passed[name] = self._newest[name]
        self._start(name, dict(self._programs())[name])

    async def kill(self, name: str) -> None:
        """End a process as SIGKILL does; return when it has ended, or after ``CLOSED_WITHIN_S``."""
        task, gate = self._running[name]
        self._traffic[name].abort()
        gate.open()
        task.cancel()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CLOSED_WITHIN_S
        while loop.time() < deadline:
            state = self.state(name)
            if not state.is_alive and not state.connections:
                return
            await asyncio.sleep(_LOOK_S)

    def pause(self, name: str) -> None:
        """Hold a process as SIGSTOP does."""
        self._running[name].gate.close()

    def resume(self, name: str) -> None:
        """Let a paused process go on."""
        self._running[name].gate.open()

    def state(self, name: str) -> ClientState:
        """Return what can be seen of a process; one that was never started is not alive."""
        traffic, process = self._traffic[name], self._running.get(name)
        if process is None:
            return ClientState(
                is_alive=False, is_paused=False, steps=0, frames=traffic.frames, connections=0
            )
        task, gate = process
        return ClientState(
            is_alive=not task.done(),
            is_paused=gate.is_closed or gate.held > 0,
            steps=self._steps[name] + gate.steps,
            frames=traffic.frames,
            connections=traffic.connections,
        )

    def group_leader(self, group: str) -> str | None:
        """Return the living process whose member leads the group's newest generation; None if it is not known."""
        name = self._leader(group)
        return name if name is not None and self.state(name).is_alive else None

    async def stop(self) -> list[BaseException]:
        """End all processes; return the errors with which some have failed."""
        tasks = [*self._ended, *(process.task for process in self._running.values())]
        for task, gate in self._running.values():
            gate.open()
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()
        self._ended.clear()
        return [result for result in results if isinstance(result, Exception)]

    def _start(self, name: str, program: Program) -> None:
        gate, coroutine = Gate(), program()
        task = asyncio.get_running_loop().create_task(held(coroutine, gate), name=name)
        # A task that is cancelled before its first step has not begun the coroutine.
        task.add_done_callback(lambda _: coroutine.close())
        self._running[name] = _Process(task, gate)

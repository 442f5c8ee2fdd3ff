"""An error for code of a simulated node that touches the real world.

Real clocks, chance, files, sockets, threads and processes would make two runs of a seed differ, and hide it. Inside
``real_world_forbidden()`` they raise ``RealWorldError``, which names the call and the node, when the calling code
belongs to an incarnation; the harness may do as it likes. The error also ends the run (``SimulationLoop.fail``), so
that an ``except Exception`` of the node cannot swallow it.

Two nets: an audit hook of the interpreter for what the kernel does (files, sockets, processes), and replaced attributes
of modules for clocks, chance and threads, restored on exit. Neither costs anything per callback. Imports may open
files, and so may logging a traceback, which shows lines of source. Log records get virtual times.

Limits: a name bound before (``from time import monotonic``) is not seen, nor is reading and writing what is already
open, nor ``hash``, ``id`` and the order of sets.
"""

from __future__ import annotations

import asyncio
import datetime
import linecache
import logging
import os
import random
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType, ModuleType
from typing import Any, NoReturn

from nemesis.simulation.incarnation import INCARNATION
from nemesis.simulation.loop import SimulationLoop

FORBIDDEN_EVENTS = (
    "open",
    "mmap.__new__",
    "os.",
    "shutil.",
    "tempfile.",
    "glob.",
    "pathlib.",
    "socket.",
    "ssl.",
    "sqlite3.",
    "subprocess.",
    "pty.",
    "signal.pthread_kill",
    "time.sleep",
    "urllib.",
    "http.",
)
"""Beginnings of the names of audit events."""
HARMLESS_EVENT = "object.__setattr__"
"""Nearly every event: an object is given another class, as each message is when it is complete."""

IMPORT_MACHINERY = ("<frozen importlib", "<frozen zipimport")
READERS_OF_SOURCE = (linecache.__file__, traceback.__file__)
"""They show lines of code in logged tracebacks."""
CLOCKS = (
    "time",
    "time_ns",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "thread_time_ns",
    "clock_gettime",
    "clock_gettime_ns",
    "sleep",
)
THREADS = ("_start_new_thread", "_start_joinable_thread")
"""What ``threading`` starts a thread with, by version of Python."""


class RealWorldError(RuntimeError):
    """A simulated node used the real world. A bug of the node's code: give it a port instead."""


class _Guard:
    """Whether the audit hook is armed. A hook cannot be removed, so there is one per process, inert when not armed."""

    depth = 0
    is_hooked = False


def _refuse(call: str, node: str) -> NoReturn:
    error = RealWorldError(f"{node} called {call}, which is of the real world")
    loop = asyncio._get_running_loop()  # noqa: SLF001 - unlike the public one it says None instead of raising
    if isinstance(loop, SimulationLoop):
        loop.fail(error)
    raise error


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == HARMLESS_EVENT or not _Guard.depth or not event.startswith(FORBIDDEN_EVENTS):
        return
    incarnation = INCARNATION.get()
    if incarnation is None or _is_allowed(sys._getframe(1)):  # noqa: SLF001
        return
    shown = ", ".join(repr(argument) for argument in arguments[:1])
    _refuse(f"{event}({shown})", incarnation.node)


def _is_allowed(frame: FrameType | None) -> bool:
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename in READERS_OF_SOURCE or filename.startswith(IMPORT_MACHINERY):
            return True
        frame = frame.f_back
    return False


def _forbid(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function for the harness, an error for a node."""

    @wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        incarnation = INCARNATION.get()
        if incarnation is not None:
            _refuse(f"{name}()", incarnation.node)
        return function(*args, **options)

    return guarded


def _forbid_unseeded(seed: Callable[..., None]) -> Callable[..., None]:
    """``Random.seed``, which must be given something inside a node."""

    @wraps(seed)
    def guarded(self: random.Random, a: Any = None, version: int = 2) -> None:
        incarnation = INCARNATION.get()
        if a is None and incarnation is not None and type(self) is not random.SystemRandom:
            _refuse("random.Random() without a seed", incarnation.node)
        seed(self, a, version)

    return guarded


class _VirtualLogTime:
    """Stands for the ``time`` module inside ``logging``: records of a simulation carry its time, since 1970."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return self.time_ns() / 1e9

    def time_ns(self) -> int:
        loop = asyncio._get_running_loop()  # noqa: SLF001
        return int(loop.time() * 1e9) if isinstance(loop, SimulationLoop) else time.time_ns()


class _InstanceOf(type):
    """Instances of the real class are instances of its guarded stand-in."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _guarded_date(real: type, *readers: str) -> type:
    """A class that makes instances of ``real``, but whose named class methods are forbidden."""

    def make(cls: type, *args: Any, **options: Any) -> Any:
        return real.__new__(real if cls is guarded else cls, *args, **options)

    def delegate(name: str) -> Any:
        def call(cls: type, *args: Any, **options: Any) -> Any:
            target = real if cls is guarded else super(guarded, cls)
            return getattr(target, name)(*args, **options)

        return classmethod(call)

    methods: dict[str, Any] = {"__new__": make, "__module__": real.__module__}
    for name, method in vars(real).items():
        if type(method).__name__ == "classmethod_descriptor":
            methods[name] = delegate(name)
    for name in readers:
        call = f"{real.__module__}.{real.__name__}.{name}"
        methods[name] = staticmethod(_forbid(getattr(real, name), call))
    guarded: type = _InstanceOf(real.__name__, (real,), methods)
    return guarded


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """What is replaced: (module or class, attribute, by what)."""

    def forbidden(module: ModuleType, *names: str) -> Iterator[tuple[Any, str, Any]]:
        for name in names:
            if hasattr(module, name):
                shown = f"{module.__name__}.{name}"
                yield module, name, _forbid(getattr(module, name), shown)

    yield logging, "time", _VirtualLogTime()
    yield from forbidden(time, *CLOCKS)
    yield from forbidden(os, "urandom", "getrandom")
    yield from forbidden(random, "_urandom")
    yield from forbidden(random, *(name for name in random.__all__ if name[0].islower()))
    yield random.Random, "seed", _forbid_unseeded(random.Random.seed)
    yield from forbidden(threading, *THREADS)
    yield from forbidden(uuid, "uuid1", "uuid4")
    yield datetime, "datetime", _guarded_date(datetime.datetime, "now", "utcnow", "today")
    yield datetime, "date", _guarded_date(datetime.date, "today")


@contextmanager
def real_world_forbidden() -> Iterator[None]:
    """Within this, nodes that touch the real world raise ``RealWorldError``. May be nested."""
    if not _Guard.is_hooked:
        sys.addaudithook(_audit)
        _Guard.is_hooked = True
    if _Guard.depth:
        yield
        return
    originals = [(owner, name, getattr(owner, name), new) for owner, name, new in _replacements()]
    for owner, name, _, new in originals:
        setattr(owner, name, new)
    _Guard.depth += 1
    try:
        yield
    finally:
        _Guard.depth -= 1
        for owner, name, original, _ in reversed(originals):
            setattr(owner, name, original)

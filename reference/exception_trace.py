"""Exceptions that nothing in the broker foresees, as events of its trace.

A broker catches what it does not foresee at a few edges (a connection, a request handler, a scheduled job, the
controller's event thread, a fetcher) and logs it as an error together with the exception. What no edge catches ends a
task, which asyncio logs in the same way, or the whole process. ``traced_exceptions`` records all three, so that no edge
needs a tracer of its own and none can forget it.

Foreseen, and no event: a cancelled task; an error without an exception; a connection that broke under a task which
nothing awaits any more (asyncio logs it); the errors with which a broker refuses to start (``foreseen``).
"""

from __future__ import annotations

import logging
import re
from asyncio import IncompleteReadError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final

from nemesis.reference.trace import Kind, Tracer

LOGGERS: Final = ("nemesis.reference", "asyncio")
"""The loggers of a broker, and that of its event loop."""
CONNECTION_ERRORS: Final = (OSError, IncompleteReadError)
MAX_TEXT: Final = 300
_PACKAGE: Final = "nemesis.reference."
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
"""Of an object, in the text of an exception: it differs from run to run."""


@contextmanager
def traced_exceptions(
    tracer: Tracer,
    foreseen: tuple[type[Exception], ...],
    *,
    is_own: Callable[[], bool] = lambda: True,
    on_death: Callable[[Callable[[], None]], None] = lambda _: None,
) -> Iterator[None]:
    """Record unforeseen exceptions of the block and of all that it starts, as long as it lasts.

    ``is_own``: whether the running code belongs to this broker, where several brokers share a process. ``on_death``
    registers what ends the recording when the broker is killed and the block never ends.
    """
    handler = _ExceptionHandler(tracer, is_own)
    loggers = [logging.getLogger(name) for name in LOGGERS]

    def stop() -> None:
        for logger in loggers:
            logger.removeHandler(handler)

    for logger in loggers:
        logger.addHandler(handler)
    on_death(stop)
    try:
        yield
    except foreseen:
        raise
    except Exception as error:
        handler.trace(error)
        raise
    finally:
        stop()


class _ExceptionHandler(logging.Handler):
    """Records each log record of an error with its exception as one event."""

    def __init__(self, tracer: Tracer, is_own: Callable[[], bool]) -> None:
        super().__init__(logging.ERROR)
        self._tracer = tracer
        self._is_own = is_own

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, Exception) or not self._is_own():
            return
        if record.name == "asyncio" and isinstance(error, CONNECTION_ERRORS):
            return
        try:
            self.trace(error)
        except OSError:  # the trace's disk is full: the caller is in the middle of an error already
            self.handleError(record)

    def trace(self, error: Exception) -> None:
        self._tracer.event(Kind.UNFORESEEN_EXCEPTION, error=described(error))


def described(error: Exception) -> str:
    """Return type, text and innermost function of the broker, as ``KeyError: 7 in log.log: Log.append``."""
    text = _ADDRESS.sub("", " ".join(str(error).split()))[:MAX_TEXT]
    summary = f"{type(error).__name__}: {text}" if text else type(error).__name__
    function = _innermost(error.__traceback__)
    return summary if function is None else f"{summary} in {function}"


def _innermost(traceback: TracebackType | None) -> str | None:
    """Return module and name of the innermost function of the reference; None if the traceback has none."""
    function = None
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        if module.startswith(_PACKAGE) and module != __name__:
            name = traceback.tb_frame.f_code.co_qualname.replace(".<locals>", "")
            function = f"{module.removeprefix(_PACKAGE)}: {name}"
        traceback = traceback.tb_next
    return function

"""Calls that Ctrl-C leaves at once, whatever code they are in.

Python runs signal handlers in the main thread, between two instructions of whatever is there. py4j, which speaks to
Spark's JVM, logs a stack trace then, and sometimes raises an error of its own instead of ``KeyboardInterrupt``. So
the main thread only waits, and another thread calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def call(
    function: Callable[Parameters, Answer], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Answer:
    """Return what the function returns, or raise what it raises; a call that Ctrl-C left goes on in its thread."""
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    answer: Future[Answer] = Future()

    def work() -> None:
        try:
            answer.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            answer.set_exception(error)

    # A daemon: what nobody waits for any more does not keep the process from its end.
    threading.Thread(target=work, name=getattr(function, "__name__", "call"), daemon=True).start()
    return answer.result()

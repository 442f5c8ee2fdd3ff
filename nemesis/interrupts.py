"""Ctrl-C and SIGTERM for work that runs in this thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """The user ended the run. The message says what is left and how to judge it."""


@contextmanager
def terminable() -> Iterator[None]:
    """Make SIGTERM end the work as Ctrl-C does, with KeyboardInterrupt, so that workers do not outlive it."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

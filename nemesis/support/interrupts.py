"""Ctrl-C and SIGTERM for work that runs in this thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM)


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


@contextmanager
def unbroken() -> Iterator[None]:
    """Put Ctrl-C and SIGTERM off until the block is over: for seconds of writing that must not be left half done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not come here
        return
    came: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, wait) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def deaf() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM in this block: for the end of a process that has met one of them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not come here
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def unheard_by_children() -> Iterator[None]:
    """Processes that are started in this block never see Ctrl-C. Here it is put off until the block is over.

    A signal that is blocked stays blocked in a new program; ignoring it here for a moment would lose it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

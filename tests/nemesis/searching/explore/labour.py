"""Work for the pool's tests: it must be importable by a fresh interpreter, quickly."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from nemesis.support.interrupts import unbroken


def labour(task: str) -> str:
    """Do what the task says."""
    match task.split():
        case ["raise"]:
            raise ValueError("two\nlines")
        case ["exit"]:
            sys.stderr.write("first words\nlast words\n")
            sys.stderr.flush()
            os._exit(3)
        case ["killed"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["hang"]:
            threading.Event().wait()
        case ["eat"]:
            food = bytearray(os.urandom(1) * (256 * 2**20))
            threading.Event().wait()
            return str(len(food))
        case ["unpicklable"]:
            return lambda: None  # type: ignore[return-value]
        case ["write", file]:
            with unbroken():
                Path(file).write_text("begun")
                threading.Event().wait(0.5)
                Path(file).write_text("whole")
                threading.Event().wait(0.5)
            return "written"
        case ["pid"]:
            return str(os.getpid())
    return task.upper()

"""The classes of a broker, stored once in the cache so that later brokers start faster.

A program of its own does it (``nemesis.runtimes.kafka_class_archiver``). It starts JVMs, all in its process group, and
the group is ended as a whole: none of them outlives the call, however the program ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from nemesis.support.paths import cache_directory

TIMEOUT_S: Final = 400.0
_PROGRAM: Final = "nemesis.runtimes.kafka_class_archiver"


def store_classes(jars: Path, say: Callable[[str], None]) -> None:
    """Store the classes of these jars when they are not stored yet; blocks. Says when they cannot be stored."""
    with tempfile.TemporaryDirectory(
        dir=cache_directory(), prefix="draft-", ignore_cleanup_errors=True
    ) as drafts:
        command = [sys.executable, "-m", _PROGRAM, "--jars", str(jars), "--drafts", drafts]
        if not succeeds(command, TIMEOUT_S):
            say("the classes of Kafka could not be stored: brokers start more slowly without them")


def succeeds(command: Sequence[str], timeout_s: float) -> bool:
    """Return whether the program exits with 0 in this time; what it started is killed in any case."""
    nowhere = subprocess.DEVNULL
    program = subprocess.Popen(
        command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        return program.wait(timeout_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()

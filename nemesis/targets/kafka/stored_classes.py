"""The classes of a broker, stored once in the cache so that later brokers start faster.

A program of its own does it (``nemesis.runtimes.kafka_class_archiver``). It starts JVMs, all in its process group, and
the group is ended as a whole: none of them outlives the call, however the program ends.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from nemesis.support.java import find_java, jars_in, java_build
from nemesis.support.paths import cache_directory

TIMEOUT_S: Final = 400.0
CLASSES: Final = "kafka-classes"
NOT_STORED: Final = (
    "the classes of Kafka could not be stored: brokers start more slowly without them"
)
_PROGRAM: Final = "nemesis.runtimes.kafka_class_archiver"


def store_classes(jars: Path, say: Callable[[str], None], *, with_quorum: bool) -> None:
    """Store the classes of these jars when they are not stored yet; blocks. Says when they cannot be stored.

    ``with_quorum``: the broker runs with KRaft.
    """
    cache = cache_directory()
    try:
        with tempfile.TemporaryDirectory(
            dir=cache, prefix="draft-", ignore_cleanup_errors=True
        ) as drafts:
            command = [sys.executable, "-m", _PROGRAM, "--jars", str(jars), "--drafts", drafts]
            if with_quorum:
                command.append("--quorum")
            if not succeeds(command, TIMEOUT_S):
                say(NOT_STORED)
    except OSError:  # the cache is read-only
        if not stored_classes(jars):
            say(NOT_STORED)


def stored_classes(jars: Path) -> tuple[Path, ...]:
    """Return the archive of these jars' classes; nothing when they are not stored."""
    archive = class_archive(jars)
    return (archive,) if archive.exists() else ()


def class_archive(jars: Path) -> Path:
    """Return where the classes of these jars are stored for this Java (``kafka_class_archiver``), or would be.

    The first part of the key is that of the directory, the second that of the jars and the Java as they are now.
    """
    java = find_java()
    state = [str(java.resolve()), java_build(java), _checksums(jars)]
    state += [f"{jar}:{(stat := jar.stat()).st_size}:{stat.st_mtime_ns}" for jar in jars_in(jars)]
    name = f"{CLASSES}-{_digest(str(jars.resolve()))}-{_digest(repr(state))}.jsa"
    return cache_directory() / name


def outdated_class_archives(archive: Path) -> list[Path]:
    """Return the archives of the same directory of jars, from before it or its Java changed."""
    directory, _, _ = archive.name.rpartition("-")
    return [other for other in archive.parent.glob(f"{directory}-*.jsa") if other != archive]


def _checksums(jars: Path) -> str:
    """Return the checksums that were fetched with the jars; a Kafka home directory has none."""
    try:
        return (jars / "SHA256SUMS").read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


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

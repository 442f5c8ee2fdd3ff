"""``.lock`` in each log directory: one process at a time uses it.

A second one would recover logs that the first appends to, write over its checkpoints, and at its end leave the mark of
a clean stop, by which the first one's next start trusts a tail that a kill has torn.

The lock is POSIX's, as Java's: it excludes Kafka's own brokers, too, and ends with the process however that ends.
Source: LogManager.lockLogDirs, kafka.utils.FileLock of Kafka 3.9.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from nemesis.reference.log.errors import KafkaStorageError

LOCK_FILE: Final = ".lock"
_MODE: Final = 0o644


@contextmanager
def locked_log_dirs(log_dirs: Sequence[str]) -> Iterator[None]:
    """Hold the directories, which are made where they are missing; raises KafkaStorageError when one is in use,
    or is another one by a symbolic link.

    One whose lock cannot be opened for another reason is left to ``LogManager``, which takes it offline.
    """
    owners: dict[tuple[int, int], str] = {}
    with ExitStack() as held:
        for log_dir in log_dirs:
            path = f"{log_dir}/{LOCK_FILE}"
            try:
                Path(log_dir).mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
            except OSError:
                continue
            held.callback(os.close, handle)
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise KafkaStorageError(
                    f"log directory {log_dir} is in use by another process, which holds {path}"
                ) from None
            file = os.fstat(handle)
            if (owner := owners.setdefault((file.st_dev, file.st_ino), log_dir)) != log_dir:
                raise KafkaStorageError(f"log directories {owner} and {log_dir} are the same one")
        yield

"""Removes what was renamed for deletion, after a while: so that who is still reading from it can finish.

What is left when the broker stops is removed when the logs are loaded again.

Source: kafka.log.LogManager (deleteLogs) and LocalLog (deleteSegmentFiles) of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from nemesis.reference.log.storage_errors import StorageErrors
from nemesis.reference.ports import Directories, Scheduler


class DelayedDeletion:
    """Of all log directories of a broker."""

    def __init__(
        self,
        directories: Directories,
        log_dirs: Collection[str],
        attempt: Callable[[Callable[[], object]], None],
    ) -> None:
        """``log_dirs`` are those that can be used, at any time; ``attempt`` sees to a KafkaStorageError."""
        self._directories = directories
        self._log_dirs = log_dirs
        self._attempt = attempt
        self._scheduler: Scheduler | None = None

    def startup(self, scheduler: Scheduler) -> None:
        """From now on deletions wait."""
        self._scheduler = scheduler

    def delete_logs(self, *paths: str | None, delay_ms: int) -> None:
        """Remove these directories of logs after that time; None stands for one that was not there."""
        self._later([path for path in paths if path is not None], delay_ms, "kafka-delete-logs")

    def delete_files(self, paths: Sequence[str], delay_ms: int) -> None:
        """Remove these files of a log after that time."""
        self._later(paths, delay_ms, "delete-file")

    def _later(self, paths: Sequence[str], delay_ms: int, task: str) -> None:
        def delete() -> None:
            for path in paths:
                self._attempt(partial(self._remove, path))

        if self._scheduler is None or not paths:
            delete()
        else:
            self._scheduler.schedule_once(task, delete, delay_s=delay_ms / 1000)

    def _remove(self, path: str) -> None:
        log_dir = next((d for d in self._log_dirs if path.startswith(f"{d}/")), None)
        if log_dir is not None:
            with StorageErrors("removing", path, log_dir):
                self._directories.remove(path)

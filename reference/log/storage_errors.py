"""Turns what a medium raises into ``KafkaStorageError``, which names the log directory that failed (KIP-112)."""

from __future__ import annotations

from nemesis.reference.log.errors import KafkaStorageError


class StorageErrors:
    """A block of work on a disk. No generator: every read and append of a log enters one."""

    __slots__ = ("_doing", "_log_dir", "_subject")

    def __init__(self, doing: str, subject: object, log_dir: str) -> None:
        """``doing`` and ``subject`` begin the error's sentence: "appending to", a partition."""
        self._doing = doing
        self._subject = subject
        self._log_dir = log_dir

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: object
    ) -> None:
        if isinstance(error, OSError):
            raise KafkaStorageError(
                f"{self._doing} {self._subject}: {error}", failed_log_dir=self._log_dir
            ) from error

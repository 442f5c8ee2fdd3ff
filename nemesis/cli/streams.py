"""Standard output and error of a program whose exit code is its verdict.

A reader that has left (``nemesis run ... | head -1``) does not change the exit code: what follows is dropped. Output
that cannot be written for another reason, such as a full disk, is a failure of the harness, reported once. Lines for
people on standard error are dropped when they cannot be written.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from nemesis.support.errors import HarnessError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


class _Unbreakable(io.FileIO):
    """A descriptor that accepts every write. ``complains``: whether a failure other than a closed pipe is raised."""

    def __init__(self, descriptor: int, *, complains: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._complains = complains
        self._is_dead = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Return how many bytes are settled, written or dropped; raises ``HarnessError`` at most once."""
        if not self._is_dead:
            try:
                return super().write(data) or 0
            except OSError as error:
                self._is_dead = True
                if self._complains and not isinstance(error, BrokenPipeError):
                    raise HarnessError(
                        f"the output cannot be written: {error.strerror}: redirect it to a place with space"
                    ) from None
        return memoryview(data).nbytes


def open_closed_descriptors() -> None:
    """Open standard descriptors that the caller closed (``>&-``), so that no file of a run gets their numbers."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one


def protect() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr`` by streams that outlive their readers."""
    open_closed_descriptors()
    sys.stdout = _stream(sys.stdout, STDOUT, complains=True)
    sys.stderr = _stream(sys.stderr, STDERR, complains=False)


def finish() -> None:
    """Write what is still buffered; raises ``HarnessError`` when it cannot be written."""
    sys.stderr.flush()
    sys.stdout.flush()


def _stream(stream: TextIO | None, descriptor: int, *, complains: bool) -> TextIO:
    """Return a stream like this one; ``None`` is that of a closed descriptor."""
    if stream is not None:
        stream.flush()
    raw = _Unbreakable(descriptor, complains=complains)
    # A buffer would write a line again when Ctrl-C arrives between its write and the buffer's hearing of it.
    return io.TextIOWrapper(
        raw if descriptor == STDERR else io.BufferedWriter(raw),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",
        line_buffering=descriptor == STDERR or raw.isatty(),
        write_through=bool(getattr(stream, "write_through", False)),
    )

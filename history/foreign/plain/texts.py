"""The text of a plain history, which is read twice, a chunk at a time: it is never in memory as a whole.

The first pass divides the text into chunks that end with lines, and counts the lines. After it each chunk has its place
among the results, so threads read chunks at the same time, into buffers that are used again and again. Memory that a
process touches first is slow: to read a file as a whole costs up to ten times as much as two passes.

Limit: a compressed file is in memory, decompressed.
"""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import numpy as np

from nemesis.history.foreign.lines import GZIP
from nemesis.history.foreign.plain.columns import Bytes

CHUNK_BYTES: Final = 1_000_000
"""About as much as a processor's own cache holds."""
LINE_FEED: Final = ord("\n")


class Text(Protocol):
    """Bytes that can be read at any position."""

    def read(self, start: int, buffer: Bytes) -> int:
        """Fill the buffer with the bytes from ``start`` on; return how many there were. Raises OSError."""


@dataclass(frozen=True, slots=True)
class MemoryText:
    """A text in memory."""

    content: Bytes

    def read(self, start: int, buffer: Bytes) -> int:
        """Copy the bytes."""
        part = self.content[start : start + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


@dataclass(frozen=True, slots=True)
class FileText:
    """A file that is open."""

    file: BinaryIO

    def read(self, start: int, buffer: Bytes) -> int:
        """Read until the buffer is full or the file ends."""
        done = 0
        while done < len(buffer):
            count = os.preadv(self.file.fileno(), [buffer[done:].data], start + done)
            if count == 0:
                break
            done += count
        return done


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text: bytes from ``start`` to ``stop``, and lines from ``first_line`` on, which counts from 0."""

    start: int
    stop: int
    first_line: int
    lines: int


def text_of(path: Path, file: BinaryIO) -> Text:
    """Return the text of an open file, decompressed; an empty one if it is damaged, which the reader of lines reports.

    Raises OSError.
    """
    if os.pread(file.fileno(), len(GZIP), 0) != GZIP:
        return FileText(file)
    with suppress(EOFError, zlib.error, gzip.BadGzipFile), gzip.open(path) as compressed:
        return MemoryText(np.frombuffer(compressed.read(), dtype=np.uint8))
    return MemoryText(np.zeros(0, dtype=np.uint8))


def divide(text: Text, chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """Return the chunks of a text, in order. A chunk is longer than asked for if a line is. Raises OSError."""
    block = np.empty(chunk_bytes, dtype=np.uint8)
    chunks: list[Chunk] = []
    start = first_line = lines = done = 0
    while count := text.read(done, block):
        is_feed = block[:count] == LINE_FEED
        if feeds := int(np.count_nonzero(is_feed)):
            lines += feeds
            stop = done + count - int(np.argmax(is_feed[::-1]))
            chunks.append(Chunk(start, stop, first_line, lines - first_line))
            start, first_line = stop, lines
        done += count
    if start < done:
        chunks.append(Chunk(start, done, first_line, 1))
    return chunks


def buffer_for(chunks: list[Chunk]) -> Bytes:
    """Return a buffer for the largest of the chunks, and a line feed behind it."""
    return np.empty(1 + max(chunk.stop - chunk.start for chunk in chunks), dtype=np.uint8)


def lines_of(text: Text, chunk: Chunk, buffer: Bytes) -> Bytes | None:
    """Return the lines of a chunk, each with a line feed at its end; None if the text was cut since it was divided.

    They are in the buffer. Raises OSError.
    """
    size = chunk.stop - chunk.start
    if text.read(chunk.start, buffer[:size]) < size:
        return None
    if buffer[size - 1] != LINE_FEED:
        buffer[size] = LINE_FEED
        size += 1
    lines = buffer[:size]
    # Code is compiled once for texts that nothing writes to, and again for others.
    lines.setflags(write=False)
    return lines

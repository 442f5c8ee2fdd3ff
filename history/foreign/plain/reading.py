"""Threads read the chunks of a text at the same time, and keep the columns of its lines."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from queue import SimpleQueue
from typing import Any

import numpy as np

from nemesis.history.foreign.plain.columns import (
    COLUMNS,
    KEPT,
    OBJECT,
    OTHER,
    SPAN_END,
    SPAN_START,
    STATUS,
    A,
    B,
    Bytes,
    C,
    Lines,
    Numbers,
    zeroed_lines,
)
from nemesis.history.foreign.plain.scanning import scan
from nemesis.history.foreign.plain.texts import Chunk, Text, buffer_for, lines_of


@dataclass(frozen=True, slots=True)
class Scanned:
    """All lines of a text and their micro-operations, and how many numbers these are.

    ``words``: the error of a plain line, and the whole of another one, by line, in order.
    """

    lines: Lines
    flat: Numbers
    numbers: int
    words: dict[int, str]


def scanned(text: Text, chunks: list[Chunk], kind: int, *, most_others: int) -> Scanned | None:
    """Return the lines of all chunks. Raises OSError.

    None: more than ``most_others`` are not plain, or the text has changed since it was divided.
    """
    # A number takes two bytes of text at least; the rest is for a line that turns out not to be plain.
    room = [(chunk.stop - chunk.start) // 2 + 8 if kind != OBJECT else 0 for chunk in chunks]
    first_numbers = list(accumulate(room, initial=0))
    flat = np.empty(first_numbers[-1], dtype=np.int64)
    lines = zeroed_lines(sum(chunk.lines for chunk in chunks))
    most = max(chunk.lines for chunk in chunks)
    threads = min(os.cpu_count() or 1, len(chunks))
    free: SimpleQueue[tuple[Bytes, Numbers]] = SimpleQueue()
    for _ in range(threads):
        free.put((buffer_for(chunks), np.zeros((COLUMNS, most), dtype=np.int64).T))

    def read(chunk: Chunk, first_number: int) -> tuple[int, int, dict[int, str]] | None:
        buffer, row_buffer = free.get()
        try:
            content = lines_of(text, chunk, buffer)
            if content is None:
                return None
            rows = row_buffer[: chunk.lines]
            rows[:] = 0
            numbers = scan(content, kind, rows, flat, first_number)
            if numbers < 0:
                return None
            _store(rows, lines, chunk.first_line)
            others = int(np.count_nonzero(rows[:, STATUS] == OTHER))
            return numbers, others, _words(content, rows, chunk.first_line)
        finally:
            free.put((buffer, row_buffer))

    numbers = others = 0
    words: dict[int, str] = {}
    with ThreadPoolExecutor(threads) as pool:
        for answer in pool.map(read, chunks, first_numbers):
            others += 0 if answer is None else answer[1]
            if answer is None or others > most_others:
                pool.shutdown(cancel_futures=True)
                return None
            numbers += answer[0]
            words |= answer[2]
    return Scanned(lines, flat, numbers, words)


def _store(rows: Numbers, lines: Lines, first_line: int) -> None:
    """Copy rows to the columns of all lines; numbers that no row has stay untouched."""
    kept: Any
    for column, kept in zip(KEPT, lines, strict=True):
        if column not in (A, B, C) or rows[:, column].any():
            kept[first_line : first_line + len(rows)] = rows[:, column]


def _words(text: Bytes, rows: Numbers, first_line: int) -> dict[int, str]:
    """The words of the spans of lines, by line."""
    lines = np.flatnonzero(rows[:, SPAN_END])
    spans = rows[lines, SPAN_START : SPAN_END + 1].tolist()
    return {
        first_line + line: bytes(text[start:end]).decode("utf-8", errors="replace")
        for line, (start, end) in zip(lines.tolist(), spans, strict=True)
    }

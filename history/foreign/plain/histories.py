"""Histories of plain EDN lines, which compiled code reads: much faster than ``lines``, and with the same result.

A history is *plain* if each line is an operation of a client in a common form (``scanning``) or an operation of
``nemesis``, the lines are in order, and each process does one thing at a time. Then no line is damaged, and at most
notes are written about the file. ``read_plain`` returns None for any other file, and ``importing.read_file`` reads it.

Threads read the chunks of the text (``texts``) at the same time. Limits: up to 96 bytes for each line are in memory at
once; columns that no line fills take none. Micro-operations take up to four times the file of address space, and half
of that or less in memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np

from nemesis.history.foreign import edn
from nemesis.history.foreign.edn import EdnError
from nemesis.history.foreign.lines import says_nothing
from nemesis.history.foreign.operation_order import LINE_NS
from nemesis.history.foreign.operations import NotAnOperation, Operation, operation_of
from nemesis.history.foreign.plain import columns
from nemesis.history.foreign.plain.columns import Bytes, Numbers
from nemesis.history.foreign.plain.texts import (
    Chunk,
    Text,
    buffer_for,
    divide,
    lines_of,
    text_of,
)
from nemesis.history.foreign.problems import Damage, Problems
from nemesis.history.freed_memory import keep_freed_memory

WORTH_COMPILED: Final = 2_000_000
"""Bytes of a file that are worth importing compiled code for."""
MAX_OTHERS: Final = 1_000
"""Lines that are not plain, beyond one in a hundred, before the file is not plain."""
MOST_NUMBERS: Final = 2**30
"""Lines, and numbers of micro-operations, of a plain history. The 31 bits of a position in Arrow's lists suffice then:
a compare-and-set has two numbers, and a completion may repeat those of its invocation."""
MOST_PROCESSES: Final = 10_000_000
"""Processes with larger numbers are numbered by sorting them, which takes ten times as long."""
PROBE_BYTES: Final = 64 * 1024
_BEGINNINGS: Final = (b"{", b"#")
_OBJECT, _LISTS, _REGISTERS = range(3)
_KINDS: Final = MappingProxyType(
    {
        "register": _OBJECT,
        "cas-register": _OBJECT,
        "list-append": _LISTS,
        "rw-register": _REGISTERS,
    }
)
"""How values are written in each workload that is read so."""
_FUNCTIONS: Final = MappingProxyType(
    {"register": 0b0011, "cas-register": 0b0111, "list-append": 0b1000, "rw-register": 0b1000}
)
"""A bit for each function of a workload, as ``columns`` counts them."""


@dataclass(frozen=True, slots=True)
class PlainHistory:
    """The lines of a plain history, without blank ones. Arrays have an entry for each line."""

    rows: Numbers
    """A row of ``plain_columns.COLUMNS`` for each line. Each column lies together in memory."""
    flat: Numbers
    """The micro-operations of all lines; other numbers may stand between them."""
    line: Numbers
    """Its number in the file, from 1."""
    time: Numbers
    """In ns, each later than the one before."""
    process: Numbers
    """Small numbers of the clients; −1 for operations of ``nemesis``."""
    process_names: Numbers
    """The process for each small number."""
    seq: Numbers
    """Position of the line's event among all events."""
    op: Numbers
    """The number of the operation; −1 for operations of ``nemesis``."""
    source: Numbers
    """The line that states the value of the line's event; −1 for operations of ``nemesis``."""
    others: dict[int, Operation]
    """Operations of ``nemesis``, by their position here."""
    errors: dict[int, Any]
    """What lines state as their error, by their position here."""
    problems: Problems
    """Notes alone."""
    is_timed: bool


def read_plain(path: Path, workload: str) -> PlainHistory | None:
    """Return the history in a file; None if it is not plain, or not worth compiled code. Raises OSError.

    A thread reads the file while numba is imported, which takes as long.
    """
    if workload not in _KINDS or find_spec("numba") is None or not path.is_file():
        return None
    with path.open("rb", buffering=0) as file, ThreadPoolExecutor(1) as reader:
        reading = reader.submit(_divided, path, file)
        if path.stat().st_size >= WORTH_COMPILED:
            import_module("nemesis.history.foreign.plain.compiled")
        text, chunks = reading.result()
        if not chunks:
            return None
        keep_freed_memory()
        return parse_plain(text, chunks, workload)


def _divided(path: Path, file: BinaryIO) -> tuple[Text, list[Chunk]]:
    """The text of a file and its chunks; none if it does not begin like a plain one, or is small."""
    text = text_of(path, file)
    probe = np.empty(PROBE_BYTES, dtype=np.uint8)
    beginning = probe[: text.read(0, probe)].tobytes()
    if beginning[:1] not in _BEGINNINGS or b"\0" in beginning:
        return text, []
    chunks = divide(text)
    return text, chunks if chunks[-1].stop >= WORTH_COMPILED else []


def parse_plain(text: Text, chunks: list[Chunk], workload: str) -> PlainHistory | None:
    """Return the history in a text; None if it is not plain. Raises OSError."""
    from nemesis.history.foreign.plain.pairing import pair

    scanned = _scanned(text, chunks, _KINDS[workload])
    if scanned is None or max(len(scanned.rows), scanned.numbers) > MOST_NUMBERS:
        return None
    rows, words = scanned.rows, scanned.words
    others = _others(words, rows)
    if others is None:
        return None
    is_said = rows[:, columns.STATUS] != columns.BLANK
    position = np.cumsum(is_said) - 1
    others = {int(position[line]): operation for line, operation in others.items()}
    is_error = rows[:, columns.STATUS] == columns.PLAIN
    errors = _errors({int(position[line]): words[line] for line in words if is_error[line]})
    line = np.flatnonzero(is_said) + 1
    rows = rows if is_said.all() else rows.T[:, is_said].T
    problems = Problems()
    time = _times(rows, line, problems)
    is_client = rows[:, columns.STATUS] == columns.PLAIN
    if errors is None or time is None or not (rows[is_client, columns.TYPE] == 0).any():
        return None
    names, process_numbers = _numbered(rows[is_client, columns.PROCESS])
    process, seq, op, source = (np.full(len(rows), -1, dtype=np.int64) for _ in range(4))
    process[is_client] = process_numbers
    if not pair(rows, process, len(names), _FUNCTIONS[workload], scanned.flat, seq, op, source):
        return None
    seq[~is_client] = np.count_nonzero(is_client) + np.arange(len(others))
    return PlainHistory(
        rows,
        scanned.flat,
        line,
        time,
        process,
        names,
        seq,
        op,
        source,
        others,
        errors,
        problems,
        is_timed=bool((rows[0, columns.TIME]) >= 0),
    )


@dataclass(frozen=True, slots=True)
class _Scanned:
    """All lines of a text: their rows and micro-operations, and how many numbers these are.

    ``words``: the error of a plain line, and the whole of another one, by line.
    """

    rows: Numbers
    flat: Numbers
    numbers: int
    words: dict[int, str]


def _scanned(text: Text, chunks: list[Chunk], kind: int) -> _Scanned | None:
    """The lines of all chunks. None if too many are not plain, or the text has changed since it was divided."""
    from nemesis.history.foreign.plain.scanning import scan

    # A number takes two bytes of text at least; the rest is for a line that turns out not to be plain.
    room = [(chunk.stop - chunk.start) // 2 + 8 if kind != _OBJECT else 0 for chunk in chunks]
    first_numbers = list(accumulate(room, initial=0))
    # Memory that is never written to is never taken.
    flat = np.empty(first_numbers[-1], dtype=np.int64)
    count = sum(chunk.lines for chunk in chunks)
    rows = np.zeros((columns.COLUMNS, count), dtype=np.int64).T
    most_others = MAX_OTHERS + count // 100
    threads = os.cpu_count() or 1
    buffers: SimpleQueue[Bytes] = SimpleQueue()
    for _ in range(threads):
        buffers.put(buffer_for(chunks))

    def read(chunk: Chunk, first_number: int) -> tuple[int, dict[int, str]] | None:
        buffer = buffers.get()
        try:
            lines = lines_of(text, chunk, buffer)
            if lines is None:
                return None
            numbers = scan(lines, kind, rows, chunk.first_line, flat, first_number)
            own = rows[chunk.first_line : chunk.first_line + chunk.lines]
            if np.count_nonzero(own[:, columns.STATUS] == columns.OTHER) > most_others:
                return None
            return numbers, _words(lines, own, chunk.first_line)
        finally:
            buffers.put(buffer)

    numbers = 0
    words: dict[int, str] = {}
    with ThreadPoolExecutor(threads) as pool:
        for answer in pool.map(read, chunks, first_numbers):
            if answer is None:
                pool.shutdown(cancel_futures=True)
                return None
            numbers += answer[0]
            words |= answer[1]
    return _Scanned(rows, flat, numbers, words)


def _words(text: Bytes, rows: Numbers, first_line: int) -> dict[int, str]:
    """The words of the spans of lines, by line."""
    lines = np.flatnonzero(rows[:, columns.SPAN_END])
    spans = rows[lines, columns.SPAN_START : columns.SPAN_END + 1].tolist()
    return {
        first_line + line: bytes(text[start:end]).decode("utf-8", errors="replace")
        for line, (start, end) in zip(lines.tolist(), spans, strict=True)
    }


def _others(words: Mapping[int, str], rows: Numbers) -> dict[int, Operation] | None:
    """The operations of lines that are not plain, by line; fills their rows. None if one is not of ``nemesis``."""
    lines = np.flatnonzero(rows[:, columns.STATUS] == columns.OTHER)
    if len(lines) > MAX_OTHERS + len(rows) // 100:
        return None
    others: dict[int, Operation] = {}
    for line in lines.tolist():
        row = rows[line]
        if says_nothing(words[line]):
            row[columns.STATUS] = columns.BLANK
            continue
        try:
            operation = operation_of(edn.loads(words[line]), line + 1)
        except (EdnError, NotAnOperation):
            return None
        if operation.is_of_client:
            return None
        row[columns.TIME] = columns.MISSING if operation.time is None else operation.time
        row[columns.INDEX] = columns.MISSING if operation.index is None else operation.index
        others[line] = operation
    return others


def _numbered(processes: Numbers) -> tuple[Numbers, Numbers]:
    """The different processes in order, and the number of each line's process among them."""
    highest = int(processes.max())
    if highest > MOST_PROCESSES:
        names, numbers = np.unique(processes, return_inverse=True)
        return names, numbers
    is_used = np.bincount(processes) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[processes]


def _errors(words: Mapping[int, str]) -> dict[int, Any] | None:
    """The errors that lines state, by the same key as their words; None if one is not EDN."""
    known: dict[str, Any] = {}
    try:
        for text in set(words.values()):
            known[text] = edn.loads(text)
    except EdnError:
        return None
    return {line: known[text] for line, text in words.items() if known[text] is not None}


def _times(rows: Numbers, line: Numbers, problems: Problems) -> Numbers | None:
    """The time of each line, as ``operation_order`` gives it; notes times that fall. None if lines are not in order."""
    time, index = rows[:, columns.TIME], rows[:, columns.INDEX]
    has_index, is_timed = index >= 0, time >= 0
    if has_index.any() and (index[0] > 1 or (np.diff(index) != 1).any() or index[0] < 0):
        return None
    if is_timed.any() != is_timed.all():
        return None
    falls = np.flatnonzero(np.diff(time) < 0) + 1
    if not has_index.any() and (len(falls) or _is_order_open(rows, time)):
        return None
    for number in line[falls].tolist():
        problems.note(Damage.TIME_FALLS, number)
    stated = time if is_timed.any() else line * LINE_NS
    steps = np.arange(len(rows))
    times: Numbers = stated - steps
    np.maximum.accumulate(times, out=times)
    times += steps
    return times


def _is_order_open(rows: Numbers, time: Numbers) -> bool:
    """Whether a line may begin an operation at the time at which the line before it ends another one."""
    type_ = rows[:, columns.TYPE]
    is_open = (
        (type_[:-1] != columns.INVOKE) & (type_[1:] <= columns.INVOKE) & (time[:-1] == time[1:])
    )
    return bool((is_open & (time[1:] >= 0)).any())

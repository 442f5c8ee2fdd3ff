"""Histories of plain EDN lines, which compiled code reads: much faster than ``lines``, and with the same result.

A history is *plain* if each line is an operation of a client in a common form (``scanning``) or an operation of
``nemesis``, the lines are in order, and each process does one thing at a time. Then no line is damaged, and at most
notes are written about the file. ``read_plain`` returns None for any other file, and ``importing.read_file`` reads it.

The text is cut into chunks at line ends; threads read them at the same time. Limits: the file and up to 96 bytes for
each line are in memory at once; columns that no line fills take none. Micro-operations take up to four times the file
of address space, and half of that or less in memory.
"""

from __future__ import annotations

import gzip
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nemesis.history.foreign import edn
from nemesis.history.foreign.edn import EdnError
from nemesis.history.foreign.lines import GZIP, says_nothing
from nemesis.history.foreign.operation_order import LINE_NS
from nemesis.history.foreign.operations import NotAnOperation, Operation, operation_of
from nemesis.history.foreign.plain import columns
from nemesis.history.foreign.plain.columns import Bytes, Numbers
from nemesis.history.foreign.problems import Damage, Problems
from nemesis.history.freed_memory import keep_freed_memory

WORTH_COMPILED: Final = 2_000_000
"""Bytes of a file that are worth importing compiled code for."""
CHUNK_BYTES: Final = 8_000_000
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
_NO_TEXT: Final = np.zeros(0, dtype=np.uint8)


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
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(_text, path)
        if path.stat().st_size >= WORTH_COMPILED:
            import_module("nemesis.history.foreign.plain.compiled")
    text = reading.result()
    if text is None:
        return None
    keep_freed_memory()
    return parse_plain(text, workload)


def parse_plain(text: Bytes, workload: str) -> PlainHistory | None:
    """Return the history in a text that ends with a line feed; None if it is not plain."""
    from nemesis.history.foreign.plain.pairing import pair

    rows, flat, numbers = _scanned(text, _KINDS[workload])
    if max(len(rows), numbers) > MOST_NUMBERS:
        return None
    others = _others(text, rows)
    if others is None:
        return None
    is_said = rows[:, columns.STATUS] != columns.BLANK
    position = np.cumsum(is_said) - 1
    others = {int(position[line]): operation for line, operation in others.items()}
    line = np.flatnonzero(is_said) + 1
    rows = rows if is_said.all() else rows.T[:, is_said].T
    errors = _errors(text, rows)
    problems = Problems()
    time = _times(rows, line, problems)
    is_client = rows[:, columns.STATUS] == columns.PLAIN
    if errors is None or time is None or not (rows[is_client, columns.TYPE] == 0).any():
        return None
    names, process_numbers = _numbered(rows[is_client, columns.PROCESS])
    process, seq, op, source = (np.full(len(rows), -1, dtype=np.int64) for _ in range(4))
    process[is_client] = process_numbers
    if not pair(rows, process, len(names), _FUNCTIONS[workload], flat, seq, op, source):
        return None
    seq[~is_client] = np.count_nonzero(is_client) + np.arange(len(others))
    return PlainHistory(
        rows,
        flat,
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


def _text(path: Path) -> Bytes | None:
    """The text of a file, decompressed, with a line feed at its end; None if it does not begin like a plain one."""
    with path.open("rb") as file:
        beginning = file.read(len(GZIP))
    if beginning == GZIP:
        content = _decompressed(path)
    else:
        is_worth_it = path.stat().st_size >= WORTH_COMPILED and beginning[:1] in _BEGINNINGS
        # numpy asks for large pages: to read into bytes takes twice as long.
        content = np.fromfile(path, dtype=np.uint8) if is_worth_it else _NO_TEXT
    probe = content[:PROBE_BYTES].tobytes()
    if len(content) < WORTH_COMPILED or probe[:1] not in _BEGINNINGS or b"\0" in probe:
        return None
    text = content if content[-1] == ord("\n") else np.append(content, np.uint8(ord("\n")))
    # Code is compiled once for texts that nothing writes to, and again for others.
    text.setflags(write=False)
    return text


def _decompressed(path: Path) -> Bytes:
    """The text of a file; empty if it is damaged, which the reader of lines reports."""
    try:
        with gzip.open(path) as file:
            return np.frombuffer(file.read(), dtype=np.uint8)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return _NO_TEXT


def _scanned(text: Bytes, kind: int) -> tuple[Numbers, Numbers, int]:
    """The rows of all lines, their micro-operations, and how many numbers these are: between chunks there are gaps."""
    from nemesis.history.foreign.plain.scanning import lines, scan

    cuts = [0]
    while cuts[-1] < len(text):
        offset = min(cuts[-1] + CHUNK_BYTES, len(text)) - 1
        while text[offset] != ord("\n"):
            offset += 1
        cuts.append(offset + 1)
    chunks = list(pairwise(cuts))
    # A number takes two bytes of text at least; the rest is for a line that turns out not to be plain.
    room = [(stop - start) // 2 + 8 if kind != _OBJECT else 0 for start, stop in chunks]
    first_numbers = list(accumulate(room, initial=0))
    # Memory that is never written to is never taken.
    flat = np.empty(first_numbers[-1], dtype=np.int64)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        counts = threads.map(lambda chunk: lines(text, *chunk), chunks)
        first_rows = list(accumulate(counts, initial=0))
        rows = np.zeros((columns.COLUMNS, first_rows[-1]), dtype=np.int64).T

        def read(chunk: tuple[int, int], first_row: int, first_number: int) -> int:
            return scan(text, *chunk, kind, rows, first_row, flat, first_number)

        numbers = sum(threads.map(read, chunks, first_rows, first_numbers))
    return rows, flat, numbers


def _others(text: Bytes, rows: Numbers) -> dict[int, Operation] | None:
    """The operations of lines that are not plain, by line; fills their rows. None if one is not of ``nemesis``."""
    lines = np.flatnonzero(rows[:, columns.STATUS] == columns.OTHER)
    if len(lines) > MAX_OTHERS + len(rows) // 100:
        return None
    others: dict[int, Operation] = {}
    for line in lines.tolist():
        row = rows[line]
        words = _words(text, row[columns.SPAN_START], row[columns.SPAN_END])
        if says_nothing(words):
            row[columns.STATUS] = columns.BLANK
            continue
        try:
            operation = operation_of(edn.loads(words), line + 1)
        except (EdnError, NotAnOperation):
            return None
        if operation.is_of_client:
            return None
        row[columns.TIME] = columns.MISSING if operation.time is None else operation.time
        row[columns.INDEX] = columns.MISSING if operation.index is None else operation.index
        row[columns.SPAN_END] = 0
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


def _words(text: Bytes, start: int, end: int) -> str:
    return bytes(text[start:end]).decode("utf-8", errors="replace")


def _errors(text: Bytes, rows: Numbers) -> dict[int, Any] | None:
    """The errors that lines state; None if one is not EDN."""
    lines = np.flatnonzero(rows[:, columns.SPAN_END])
    spans = rows[lines, columns.SPAN_START : columns.SPAN_END + 1].tolist()
    known: dict[str, Any] = {}
    errors = {}
    for line, (start, end) in zip(lines.tolist(), spans, strict=True):
        words = _words(text, start, end)
        try:
            error = known[words] if words in known else known.setdefault(words, edn.loads(words))
        except EdnError:
            return None
        if error is not None:
            errors[line] = error
    return errors


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

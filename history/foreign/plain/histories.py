"""Histories of plain EDN lines, which compiled code reads: much faster than ``lines``, and with the same result.

A history is *plain* if each line is an operation of a client in a common form (``scanning``) or an operation of
``nemesis``, the lines are in order, and each process does one thing at a time. Then no line is damaged, and at most
notes are written about the file. ``read_plain`` returns None for any other file, and ``importing.read_file`` reads it.

Limits: up to 90 bytes for each line are in memory at once. Micro-operations take up to four times the file of address
space, and half of that or less in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np

from nemesis.history.foreign import edn
from nemesis.history.foreign.edn import EdnError
from nemesis.history.foreign.lines import says_nothing
from nemesis.history.foreign.operations import NotAnOperation, Operation, operation_of
from nemesis.history.foreign.plain import columns
from nemesis.history.foreign.plain.columns import Lines, Numbers, Positions
from nemesis.history.foreign.plain.texts import Chunk, Text, divide, text_of
from nemesis.history.foreign.problems import Problems
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
_KINDS: Final = MappingProxyType(
    {
        "register": columns.OBJECT,
        "cas-register": columns.OBJECT,
        "list-append": columns.LISTS,
        "rw-register": columns.REGISTERS,
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

    lines: Lines
    flat: Numbers
    """The micro-operations of all lines; other numbers may stand between them."""
    line: Positions
    """Its number in the file, from 1."""
    time: Numbers
    """In ns, each later than the one before."""
    process: Positions
    """Small numbers of the clients; −1 for operations of ``nemesis``."""
    process_names: Numbers
    """The process for each small number."""
    seq: Positions
    """Position of the line's event among all events."""
    op: Positions
    """The number of the operation; −1 for operations of ``nemesis``."""
    source: Positions
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
        reading = reader.submit(_chunked, path, file)
        if path.stat().st_size >= WORTH_COMPILED:
            import_module("nemesis.history.foreign.plain.compiled")
        text, chunks = reading.result()
        if not chunks:
            return None
        keep_freed_memory()
        return parse_plain(text, chunks, workload)


def _chunked(path: Path, file: BinaryIO) -> tuple[Text, list[Chunk]]:
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
    from nemesis.history.foreign.plain.reading import scanned
    from nemesis.history.foreign.plain.times import times_of

    count = sum(chunk.lines for chunk in chunks)
    read = scanned(text, chunks, _KINDS[workload], most_others=MAX_OTHERS + count // 100)
    if read is None or max(count, read.numbers) > MOST_NUMBERS:
        return None
    lines, words = read.lines, read.words
    others = _others(words, lines)
    if others is None:
        return None
    is_said = lines.status != columns.BLANK
    number = np.flatnonzero(is_said).astype(np.int32)
    positions = dict(zip(words, np.searchsorted(number, list(words)).tolist(), strict=True))
    others = {positions[line]: operation for line, operation in others.items()}
    is_error = lines.status == columns.PLAIN
    errors = _errors({positions[line]: words[line] for line in words if is_error[line]})
    if not is_said.all():
        lines = columns.Lines(*(column[is_said] for column in lines))
    number += 1
    problems = Problems()
    time = times_of(lines, number, problems)
    is_client = lines.status == columns.PLAIN
    if errors is None or time is None or not (lines.type[is_client] == columns.INVOKE).any():
        return None
    names, process_numbers = _numbered(
        lines.process if is_client.all() else lines.process[is_client]
    )
    process, seq, op, source = (np.full(len(number), -1, dtype=np.int32) for _ in range(4))
    process[is_client] = process_numbers
    if not pair(lines, process, len(names), _FUNCTIONS[workload], read.flat, seq, op, source):
        return None
    seq[~is_client] = np.count_nonzero(is_client) + np.arange(len(others))
    return PlainHistory(
        lines,
        read.flat,
        number,
        time,
        process,
        names,
        seq,
        op,
        source,
        others,
        errors,
        problems,
        is_timed=bool(lines.time[0] >= 0),
    )


def _others(words: Mapping[int, str], lines: Lines) -> dict[int, Operation] | None:
    """The operations of lines that are not plain, by line; fills their columns. None if one is not of ``nemesis``."""
    others: dict[int, Operation] = {}
    for line in np.flatnonzero(lines.status == columns.OTHER).tolist():
        if says_nothing(words[line]):
            lines.status[line] = columns.BLANK
            continue
        try:
            operation = operation_of(edn.loads(words[line]), line + 1)
        except (EdnError, NotAnOperation):
            return None
        if operation.is_of_client:
            return None
        lines.time[line] = columns.MISSING if operation.time is None else operation.time
        lines.indexes[line] = columns.MISSING if operation.index is None else operation.index
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

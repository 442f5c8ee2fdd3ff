"""From a file of somebody else's to the raw events of a run.

The file is read once; its operations are put in order, paired, given names, and written as events, one JSON line each,
where a run of ours has them. From there on all is as with a run: ``nemesis.history.ingest``, checks, report. What is
wrong with the file is a list of sentences, kept with the run; a file in which no operation can be read is no history.

Limits: all operations are in memory at once, about 1 kB each. Entries of an operation other than type, process, f,
value, time and error are not kept, but for operations that no check looks at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from nemesis.history.errors import ForeignHistoryError, MissingHistoryError
from nemesis.history.events import Event, Kind
from nemesis.history.foreign.lines import Unreadable, read_lines
from nemesis.history.foreign.logs import Logs
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.objects import CasRegister, Mutex, Queue, Register, Set
from nemesis.history.foreign.operation_order import give_times, in_order
from nemesis.history.foreign.operations import Operation
from nemesis.history.foreign.pairs import Pair, pairs, without_repeats
from nemesis.history.foreign.problems import Damage, Problems
from nemesis.history.foreign.transactions import ListAppend, RwRegister
from nemesis.history.foreign.vocabulary import Part, Vocabulary, aside

WORKLOADS: Final[MappingProxyType[str, type[Vocabulary]]] = MappingProxyType(
    {
        "register": Register,
        "cas-register": CasRegister,
        "mutex": Mutex,
        "set": Set,
        "linearizable-set": Set,
        "queue": Queue,
        "fifo-queue": Queue,
        "list-append": ListAppend,
        "rw-register": RwRegister,
        "kafka": Logs,
    }
)
PROBE_BYTES: Final = 64 * 1024
HASHED_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Imported:
    """What was read of a file."""

    operations: int
    problems: list[str]
    may_lack_operations: bool
    """Whether operations of the history may be missing, so that what it does not say proves nothing."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file that is a history of this workload, as far as it could be read."""

    operations: list[Operation]
    """In order, all with their times."""
    problems: Problems
    is_complete: bool
    """Whether the indexes of the operations prove that no line is missing."""


def read_file(path: Path) -> ForeignFile:
    """Return what a file says; raises HistoryError when it is no history at all."""
    _require_text(path)
    problems = Problems()
    operations: list[Operation] = []
    first: Unreadable | None = None
    try:
        for read in read_lines(path):
            if isinstance(read, Unreadable):
                first = first or read
                damage = Damage.TORN if read.is_torn else Damage.UNREADABLE
                problems.note(damage, read.line, read.reason)
            else:
                operations.append(read)
    except OSError as error:
        raise MissingHistoryError(f"{path} cannot be read: {error.strerror}") from None
    if not operations:
        why = f": line {first.line} is none, {first.reason}" if first else ": it is empty"
        raise ForeignHistoryError(f"{path} is no history of operations{why}")
    placed = list(without_repeats(in_order(operations, problems), problems))
    give_times(placed)
    _note_missing(placed, problems)
    indexes = [operation.index for operation in placed]
    return ForeignFile(placed, problems, is_complete=indexes == list(range(len(placed))))


def _note_missing(placed: list[Operation], problems: Problems) -> None:
    """Note gaps in the indexes, which begin with 0 or 1, unless lines that could not be read account for them."""
    indexes = [operation.index for operation in placed if operation.index is not None]
    if len(indexes) < len(placed):
        return
    start = min(indexes[0], 1) - 1
    if indexes[-1] - start - len(set(indexes)) <= problems.count(Damage.UNREADABLE):
        return
    for before, after, operation in zip([start, *indexes], indexes, placed, strict=False):
        if after > before + 1:
            problems.note(Damage.MISSING, operation.line)


def _require_text(path: Path) -> None:
    """Raise HistoryError for what is not a file of text."""
    if not path.exists():
        raise MissingHistoryError(f"there is no file {path}")
    if not path.is_file():
        raise ForeignHistoryError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            beginning = file.read(PROBE_BYTES)
    except OSError as error:
        raise MissingHistoryError(f"{path} cannot be read: {error.strerror}") from None
    if b"\0" in beginning:
        raise ForeignHistoryError(f"{path} is no history: it is not text")


def events_of(file: ForeignFile, workload: str, names: Names) -> Iterator[Event]:
    """Yield the events of a file's operations, each operation's when it completes; adds to the file's problems.

    ``workload`` is one of ``WORKLOADS``.
    """
    vocabulary = WORKLOADS[workload]()
    clients = (operation for operation in file.operations if operation.is_of_client)
    op = seq = 0
    for pair in pairs(clients, file.problems, is_complete=file.is_complete):
        for part in _parts(vocabulary, pair, names, file.problems):
            for columns in (part.invoke, part.completion):
                if columns is not None:
                    yield Event(**columns, op=op, seq=seq)
                    seq += 1
            op += 1
    for operation in file.operations:
        if not operation.is_of_client:
            yield Event(**{**aside(operation), "kind": Kind.INFO.value}, seq=seq)
            seq += 1


def _parts(vocabulary: Vocabulary, pair: Pair, names: Names, problems: Problems) -> list[Part]:
    f = pair.invoke.f or vocabulary.default
    if f in vocabulary.functions:
        return vocabulary.parts(pair, names, problems)
    problems.note(Damage.UNKNOWN_F, pair.invoke.line, f":f {f}" if f else "it names none")
    completion = None if pair.completion is None else aside(pair.completion)
    return [Part(aside(pair.invoke), completion)]


def write_events(file: ForeignFile, workload: str, directory: Path, raw: Path) -> Imported:
    """Write the events into ``raw`` and the table of names into ``directory``; raises OSError."""
    names = Names()
    encoder = msgspec.json.Encoder()
    lines = bytearray()
    with raw.open("xb", buffering=HASHED_BYTES) as out:
        for event in events_of(file, workload, names):
            encoder.encode_into(event, lines)
            lines += b"\n"
            out.write(lines)
            lines.clear()
    names.write(directory)
    problems = file.problems
    return Imported(
        operations=len(file.operations),
        problems=problems.sentences(),
        may_lack_operations=problems.may_lack_operations(is_complete=file.is_complete),
    )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""From a file of somebody else's to the raw events of a run.

The file is read once; its operations are put in order, paired, given names, and written as events, one JSON line each,
where a run of ours has them. From there on all is as with a run: ``nemesis.history.ingest``, checks, report. What is
wrong with the file is a list of sentences, kept with the run; a file in which no operation can be read is no history.

Limits: all operations are in memory at once, about 1 kB each. Entries of an operation other than type, process, f,
value, time and error are not kept, but for operations that no check looks at.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import structs

from nemesis.history.errors import ForeignHistoryError, MissingHistoryError
from nemesis.history.events import Event, Kind
from nemesis.history.foreign.binary_store import is_binary_store
from nemesis.history.foreign.function_names import changes, reads
from nemesis.history.foreign.key_maps import MonotonicKeys, PredicateInserts
from nemesis.history.foreign.key_values import KeyValues
from nemesis.history.foreign.lines import GZIP, Unreadable, read_lines
from nemesis.history.foreign.logs import Logs
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.objects import (
    CasRegister,
    FifoQueue,
    Inserts,
    Mutex,
    Queue,
    Register,
    Set,
)
from nemesis.history.foreign.operation_order import give_times, in_order
from nemesis.history.foreign.operations import FAIL, NO_PROCESS, OK, Operation
from nemesis.history.foreign.origins import Origins
from nemesis.history.foreign.pairs import Pair, pairs, supposed, without_key, without_repeats
from nemesis.history.foreign.problems import Damage, Problems
from nemesis.history.foreign.sessions import (
    NOTE,
    NUMBERED,
    is_directory_of_logs,
    log_files,
    read_sessions,
)
from nemesis.history.foreign.subkeys import Subkeys
from nemesis.history.foreign.totals import Bank, Counter, GrowOnlyCounter, PnCounter, UniqueIds
from nemesis.history.foreign.transactions import ListAppend, MultiRegister, RwRegister
from nemesis.history.foreign.vocabulary import Part, Vocabulary, aside

WORKLOADS: Final[MappingProxyType[str, type[Vocabulary]]] = MappingProxyType(
    {
        "register": Register,
        "cas-register": CasRegister,
        "mutex": Mutex,
        "set": Set,
        "linearizable-set": Set,
        "queue": Queue,
        "fifo-queue": FifoQueue,
        "counter": Counter,
        "g-counter": GrowOnlyCounter,
        "pn-counter": PnCounter,
        "multi-register": MultiRegister,
        "key-value": KeyValues,
        "unique-ids": UniqueIds,
        "bank": Bank,
        "list-append": ListAppend,
        "rw-register": RwRegister,
        "causal-reverse": Inserts,
        "sequential": Subkeys,
        "monotonic-keys": MonotonicKeys,
        "predicate-inserts": PredicateInserts,
        "long-fork": RwRegister,
        "kafka": Logs,
    }
)
TRANSACTIONS: Final = frozenset({"list-append", "rw-register"})
"""Workloads that can be judged by the order of each process alone."""
PROBE_BYTES: Final = 64 * 1024
HASHED_BYTES: Final = 1024 * 1024
DIGESTED_BYTES: Final = 8 * 1024 * 1024
"""Read and digested without Python's lock. A thread waits up to 5 ms for the lock after each block."""
IGNORE_TIME: Final = TRANSACTIONS | {
    "queue",
    "unique-ids",
    "bank",
    "long-fork",
    "sequential",
    "monotonic-keys",
    "predicate-inserts",
}
NO_REAL_TIME: Final = "the history has completions only, no processes, or equal indexes: it is judged without real time"


@dataclass(frozen=True, slots=True)
class Imported:
    """What was read of a file."""

    operations: int
    problems: list[str]
    notes: list[str]
    """How the file was read; no verdict depends on it."""
    has_real_time: bool
    is_timed: bool
    may_lack_operations: bool
    """Whether operations of the history may be missing, so that what it does not say proves nothing."""
    is_cut_off: bool
    """Whether operations after the end of the history may be missing."""
    may_hide_changes: bool
    """Whether an operation changed an object in a way that no check knows."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file that is a history of this workload, as far as it could be read."""

    operations: list[Operation]
    """In order for each process, all with their times."""
    problems: Problems
    is_complete: bool
    """Whether the indexes of the operations prove that no line is missing."""
    has_real_time: bool = True
    """False: the history does not state when operations began, in which order, or which process did what."""
    is_timed: bool = True
    """False: no operation has a time."""

    @property
    def has_invocations(self) -> bool:
        """Whether the file states what clients began: what never completed is missing from one that does not."""
        return any(operation.is_invoke for operation in self.operations)

    def may_lack_operations(self) -> bool:
        """Whether operations of the history may be missing from the file."""
        is_lacking = self.problems.may_lack_operations(is_complete=self.is_complete)
        return is_lacking or not self.has_invocations


def read_file(path: Path) -> ForeignFile:
    """Return what a file says; raises HistoryError when it is no history at all."""
    if (by_session := _read_sessions(path)) is not None:
        return by_session
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
    except EOFError:
        problems.note(
            Damage.TORN, operations[-1].line if operations else 1, "gzip's end is missing"
        )
    except (OSError, zlib.error) as error:
        raise MissingHistoryError(f"{path} cannot be read: {error}") from None
    operations = _with_processes(operations, problems)
    if not operations:
        why = f": line {first.line} is none, {first.reason}" if first else ": it is empty"
        raise ForeignHistoryError(f"{path} is no history of operations{why}")
    ordered = in_order(operations, problems)
    has_real_time = _has_real_time(operations) and not problems.count(Damage.SAME_INDEX)
    if not has_real_time:
        problems.remarks.append(NO_REAL_TIME)
    placed = list(without_repeats(ordered, problems, has_real_time=has_real_time))
    is_timed = give_times(placed, problems)
    _note_missing(placed, problems)
    indexes = [operation.index for operation in placed]
    is_complete = indexes == list(range(len(placed)))
    return ForeignFile(placed, problems, is_complete, has_real_time, is_timed)


def _read_sessions(path: Path) -> ForeignFile | None:
    """Return a history of sessions without times; None for a file of another form. Raises HistoryError."""
    if not (path.is_file() or is_directory_of_logs(path)):
        return None
    try:
        history = read_sessions(path)
    except (OSError, zlib.error) as error:
        raise MissingHistoryError(f"{path} cannot be read: {error}") from None
    if history is None:
        return None
    problems = Problems()
    problems.remarks += [NOTE] if history.has_lines else [NOTE, NUMBERED]
    operations = sorted(history.operations(), key=lambda operation: operation.line)
    if not operations:
        raise ForeignHistoryError(f"{path} has no operations: it is empty")
    give_times(operations, problems)
    return ForeignFile(operations, problems, is_complete=True, has_real_time=False, is_timed=False)


def _with_processes(operations: list[Operation], problems: Problems) -> list[Operation]:
    """Return the operations that can be used: those that name a process, or all if none does."""
    named = [operation for operation in operations if operation.process != NO_PROCESS]
    if not any(operation.is_of_client for operation in named):
        return operations
    for operation in operations:
        if operation.process == NO_PROCESS:
            problems.note(Damage.UNREADABLE, operation.line, "it names no process")
    return named


def _has_real_time(operations: list[Operation]) -> bool:
    """Whether the history states which process began each operation, and when."""
    clients = [operation for operation in operations if operation.is_of_client]
    has_processes = all(operation.process != NO_PROCESS for operation in clients)
    return has_processes and (not clients or any(operation.is_invoke for operation in clients))


def without_real_time(file: ForeignFile, workload: str) -> list[str]:
    """Return the problem that a workload has whose promise is about real time."""
    if file.has_real_time or workload in IGNORE_TIME:
        return []
    return [f"{NO_REAL_TIME}; that a violation is absent cannot be proved"]


def _note_missing(placed: list[Operation], problems: Problems) -> None:
    """Note gaps in the indexes, which begin with 0 or 1, unless lines that could not be read account for them.

    Who filters a history leaves gaps in between. So a gap in front alone is a beginning that was cut off.
    """
    indexes = [operation.index for operation in placed if operation.index is not None]
    if len(indexes) < len(placed):
        return
    start = min(indexes[0], 1) - 1
    if indexes[-1] - start - len(set(indexes)) <= problems.count(Damage.UNREADABLE):
        return
    behind_gaps = [
        operation
        for before, after, operation in zip([start, *indexes], indexes, placed, strict=False)
        if after > before + 1
    ]
    is_cut = behind_gaps == placed[:1]
    for operation in behind_gaps:
        problems.note(Damage.CUT if is_cut else Damage.MISSING, operation.line)


def _require_text(path: Path) -> None:
    """Raise HistoryError for what is not a file of text."""
    if not path.exists():
        raise MissingHistoryError(f"there is no file {path}")
    if not path.is_file():
        raise ForeignHistoryError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            beginning = file.read(PROBE_BYTES)
        if beginning.startswith(GZIP):
            with gzip.open(path) as file:
                beginning = file.read(PROBE_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise MissingHistoryError(f"{path} cannot be read: {error}") from None
    if b"\0" in beginning and not is_binary_store(beginning):
        raise ForeignHistoryError(f"{path} is no history: it is not text")


def events_and_lines(
    file: ForeignFile, workload: str, names: Names
) -> Iterator[tuple[Event, Operation]]:
    """Yield the events of a file, each with the operation whose line states it; adds to the file's problems.

    The events of an operation come when it completes. ``workload`` is one of ``WORKLOADS``.
    """
    vocabulary = WORKLOADS[workload]()
    op = seq = 0
    for pair in _pairs(file, vocabulary, is_ordered=workload in TRANSACTIONS):
        for part in _parts(vocabulary, pair, names, file.problems):
            ends = ((part.invoke, pair.invoke), (part.completion, pair.completion))
            for columns, operation in ends:
                if columns is not None and operation is not None:
                    yield Event(**columns, op=op, seq=seq), operation
                    seq += 1
            op += 1
    file.problems.has_unread_change |= _returns_a_status(file)
    for operation in file.operations:
        if not operation.is_of_client:
            columns = {**aside(operation), "kind": Kind.INFO.value}
            yield Event(**columns, seq=seq), operation
            seq += 1


def _returns_a_status(file: ForeignFile) -> bool:
    """Whether an operation returned what no invocation states, and another ``ok`` states in place of its value.

    Then that value may be the one that was written, as Knossos has it (``knossos.history/complete``).
    """
    statuses = file.problems.statuses
    if not statuses:
        return False
    asked = {repr(without_key(each.value)) for each in file.operations if each.is_invoke}
    returned = {
        repr(without_key(each.value))
        for each in file.operations
        if each.type == OK and each.f not in statuses
    }
    return not returned.isdisjoint(set().union(*statuses.values()) - asked)


def _pairs(file: ForeignFile, vocabulary: Vocabulary, *, is_ordered: bool) -> Iterator[Pair]:
    """Yield the clients' operations; without real time all are under way together, unless ``is_ordered``.

    ``is_ordered``: the checks of the workload can leave out real time, and use the order of each process.
    """
    clients = [operation for operation in file.operations if operation.is_of_client]
    if file.has_real_time:
        yield from pairs(
            clients,
            file.problems,
            is_complete=file.is_complete,
            may_be_silent=vocabulary.may_be_silent,
        )
        return
    last = max((operation.time or 0 for operation in file.operations), default=0)
    if file.has_invocations:
        # Where all are of one process, several of its operations under way are not damage.
        is_one = any(operation.process == NO_PROCESS for operation in clients)
        problems = Problems() if is_one else file.problems
        every = pairs(clients, problems, is_complete=file.is_complete)
    else:
        every = (Pair(supposed(operation, operation.time or 0), operation) for operation in clients)
    for number, pair in enumerate(every):
        process = number if pair.invoke.process == NO_PROCESS else pair.invoke.process
        shift = 0 if is_ordered else last + 1
        invoke = structs.replace(pair.invoke, process=process)
        completion = pair.completion and structs.replace(
            pair.completion, process=process, time=(pair.completion.time or 0) + shift
        )
        yield Pair(invoke, completion, is_alone=pair.is_alone and is_ordered)


def _parts(vocabulary: Vocabulary, pair: Pair, names: Names, problems: Problems) -> list[Part]:
    ends = [pair.invoke, *([pair.completion] if pair.completion else [])]
    if any(vocabulary.function_of(operation) for operation in ends):
        return vocabulary.parts(pair, names, problems)
    f = pair.invoke.f
    has_failed = pair.completion is not None and pair.completion.type == FAIL
    if not f or (changes(f) and not has_failed):
        problems.note(Damage.UNKNOWN_F, pair.invoke.line, f":f {f}" if f else "it names none")
    else:
        problems.note_group(Damage.OTHER_F, pair.invoke.line, f":f {f}")
        problems.has_unread_change |= not (has_failed or reads(f))
    completion = None if pair.completion is None else aside(pair.completion)
    return [Part(aside(pair.invoke), completion)]


def write_events(file: ForeignFile, workload: str, directory: Path, raw: Path) -> Imported:
    """Write the events into ``raw`` and the table of names into ``directory``; raises OSError."""
    names = Names()
    encoder = msgspec.json.Encoder()
    lines = bytearray()
    origins = Origins()
    with raw.open("xb", buffering=HASHED_BYTES) as out:
        for event, operation in events_and_lines(file, workload, names):
            encoder.encode_into(event, lines)
            lines += b"\n"
            out.write(lines)
            lines.clear()
            origins.add(operation)
    names.write(directory)
    origins.write(directory)
    problems = file.problems
    return Imported(
        operations=len(file.operations),
        problems=[*problems.sentences(), *without_real_time(file, workload)],
        notes=problems.notes(),
        has_real_time=file.has_real_time,
        is_timed=file.is_timed,
        may_lack_operations=file.may_lack_operations(),
        is_cut_off=problems.is_cut_off(),
        may_hide_changes=problems.may_hide_changes(),
    )


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the logs of a directory; raises OSError."""
    files = log_files(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits, of a directory that of its logs; raises OSError."""
    if path.is_dir():
        digest = hashlib.sha256()
        for log in log_files(path):
            digest.update(log.read_bytes())
        return digest.hexdigest()
    digest, block = hashlib.sha256(), bytearray(DIGESTED_BYTES)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(block):
            digest.update(memoryview(block)[:count])
    return digest.hexdigest()

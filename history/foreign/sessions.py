"""Histories of transactions by session, without times: the forms of dbcop, PolySI and Cobra.

Each form states sessions, each a sequence of transactions over registers that write every value once. Whole
transactions are recorded, with what they read. So each becomes an invocation and a completion of its session, in
that sequence, and the history is judged without real time.

* dbcop, JSON: ``[[{"events": [{"Write": {"variable": 0, "version": 1}}], "committed": true}]]``, plain or as ``data``
  of a map; events may be ``["w", 0, 1]``, as in newer files
* dbcop, text: ``[x:=1 y==2] [y==?]!``, sessions divided by ``---``
* dbcop, binary (bincode): numbers of eight bytes, the lowest first
* PolySI, text: a line ``w(key,value,session,transaction)`` or ``r(…)`` for each operation
* Cobra: a directory with a binary ``.log`` for each session

A transaction that is marked as not committed failed, as in dbcop; without such a mark its outcome is unknown. PolySI's
numbers of transactions may begin again in each session. In dbcop's and PolySI's forms 0 is the initial value: such a
read is nil, unless a transaction writes 0 to that key. Cobra's reads name the write that they saw, and that
name is the value; a read of an initial value is nil.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from nemesis.history.errors import ForeignHistoryError
from nemesis.history.foreign.edn import Keyword
from nemesis.history.foreign.operations import FAIL, INFO, INVOKE, OK, Operation

LOG: Final = ".log"
"""How the files of a directory of Cobra are called."""
GZIP: Final = b"\x1f\x8b"
READ, WRITE = Keyword("r"), Keyword("w")
_JSON: Final = re.compile(
    rb"\s*(?:\[\s*\[\s*(?:\]|\{\s*\"(?:events|committed)\")|\{\s*\"params\"\s*:)"
)
_POLYSI: Final = re.compile(r"([rw])\((\d+),(\d+),(\d+),(\d+)\)")
_POLYSI_BEGINS: Final = re.compile(rb"\s*[rw]\(\d+,\d+,\d+,\d+\)")
_HIST: Final = re.compile(rb"\s*(?://[^\n]*\n\s*)*\[\s*[A-Za-z_]\w*\s*(?::=|==)")
_FORMS: Final[tuple[Callable[[bytes], object], ...]] = (
    _JSON.match,
    _POLYSI_BEGINS.match,
    _HIST.match,
    lambda beginning: b"\0" in beginning,
)
"""Whether a file that begins with these bytes may be of one of the forms."""
PROBE_BYTES: Final = 64 * 1024
_HIST_TRANSACTION: Final = re.compile(r"\s*\[([^\]]*)\](!?)")
_HIST_EVENT: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:(:=)\s*(\d+)|==\s*(\d+|\?))\s*")
_INITIAL_TRANSACTIONS: Final = frozenset({0xBEBEEBEE, 0xDEADBEEF})
_COLLECTED: Final = frozenset({0x23332333, 0x66666666})
"""Writes that Cobra's garbage collection makes."""
NOTE: Final = "the file has sessions of transactions without times: it is judged without real time"
NUMBERED: Final = "it has no lines: a line is the number of a transaction here, session by session"


class Micro(NamedTuple):
    f: Keyword
    key: Any
    value: Any


@dataclass(slots=True)
class Transaction:
    line: int
    outcome: str
    micros: list[Micro] = field(default_factory=list)


Session = list[Transaction]


class _MalformedError(ValueError):
    """A file is not of its form; the message says why."""


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """The sessions of a file, in its sequence."""

    sessions: list[Session]
    has_lines: bool

    def operations(self) -> Iterator[Operation]:
        """Yield an invocation and a completion for each transaction."""
        for process, session in enumerate(self.sessions):
            for transaction in session:
                asked = tuple(
                    Micro(f, key, None if f == READ else value)
                    for f, key, value in transaction.micros
                )
                shared: dict[str, Any] = {"line": transaction.line, "process": process, "f": "txn"}
                yield Operation(type=INVOKE, value=tuple(map(tuple, asked)), **shared)
                answer = transaction.micros if transaction.outcome == OK else asked
                yield Operation(type=transaction.outcome, value=tuple(map(tuple, answer)), **shared)


def is_directory_of_logs(path: Path) -> bool:
    """Whether a path is a directory of Cobra's logs."""
    return path.is_dir() and not (path / "run.json").exists() and bool(log_files(path))


def log_files(directory: Path) -> list[Path]:
    """Return the logs of a directory of Cobra, in the sequence of their names."""
    return sorted(file for file in directory.glob(f"*{LOG}") if file.is_file())


def read_sessions(path: Path) -> SessionHistory | None:
    """Return the history of a file of these forms, None for another form. Raises HistoryError, OSError."""
    try:
        if path.is_dir():
            return SessionHistory(_numbered([_cobra(file) for file in log_files(path)]), False)
        with path.open("rb") as file:
            if file.read(len(GZIP)) != GZIP:
                file.seek(0)
                return _read_file(file)
        with gzip.open(path) as decompressed:
            return _read_file(decompressed)
    except _MalformedError as error:
        raise ForeignHistoryError(f"{path} is damaged: {error}") from None
    except EOFError:
        return None  # Cut off: the reader of lines says so.


def _read_file(file: BinaryIO | gzip.GzipFile) -> SessionHistory | None:
    beginning = file.read(PROBE_BYTES)
    is_candidate = any(is_form(beginning) for is_form in _FORMS)
    return _read(beginning + file.read()) if is_candidate else None


def _read(content: bytes) -> SessionHistory | None:
    if _JSON.match(content):
        sessions = _dbcop_json(content)
        if sessions is None:
            return None
        return SessionHistory(_numbered(_without_zeros(sessions)), has_lines=False)
    if (sessions := _bincode(content)) is not None:
        return SessionHistory(_numbered(_without_zeros(sessions)), has_lines=False)
    if _POLYSI_BEGINS.match(content):
        return SessionHistory(_without_zeros(_polysi(content.decode(errors="replace"))), True)
    if _HIST.match(content):
        return SessionHistory(_without_zeros(_hist(content.decode(errors="replace"))), True)
    return None


def _numbered(sessions: list[Session]) -> list[Session]:
    number = 0
    for session in sessions:
        for transaction in session:
            number += 1
            transaction.line = number
    return sessions


def _without_zeros(sessions: list[Session]) -> list[Session]:
    """Return the sessions with nil for a read of 0, unless a transaction writes 0 to that key."""
    every = [micro for session in sessions for each in session for micro in each.micros]
    written = {key for f, key, value in every if f == WRITE and value == 0}
    for session in sessions:
        for transaction in session:
            transaction.micros = [
                Micro(f, key, None)
                if f == READ and value == 0 and key not in written
                else Micro(f, key, value)
                for f, key, value in transaction.micros
            ]
    return sessions


def _dbcop_json(content: bytes) -> list[Session] | None:
    """Return the sessions of a document; None if it is a map of something else."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _MalformedError(f"it is not JSON: {error}") from None
    if isinstance(document, dict) and "data" not in document:
        return None
    data = document["data"] if isinstance(document, dict) else document
    return [
        [_json_transaction(transaction) for transaction in _expect(list, session)]
        for session in _expect(list, data)
    ]


def _json_transaction(transaction: Any) -> Transaction:
    said = _expect(dict, transaction)
    is_committed = said.get("committed", said.get("success"))
    micros = [_json_event(event) for event in _expect(list, said.get("events"))]
    kept = [micro for micro in micros if micro is not None]
    outcome = INFO if is_committed is None else OK if is_committed is True else FAIL
    return Transaction(0, outcome, kept)


def _json_event(event: Any) -> Micro | None:
    """Return what an event says; None for one of an older file that did not succeed."""
    if isinstance(event, list) and len(event) == 3 and event[0] in ("r", "w"):
        f, key, value = event
        return Micro(Keyword(f), key, value)
    said = _expect(dict, event)
    if "write" in said:
        f = WRITE if said["write"] else READ
        is_done = said.get("success") is True
        return Micro(f, said.get("variable"), said.get("value")) if is_done else None
    for name, f in (("Read", READ), ("Write", WRITE)):
        if name in said:
            fields = _expect(dict, said[name])
            return Micro(f, fields.get("variable"), fields.get("version"))
    raise _MalformedError(f"expected an event, got {str(event)[:40]}")


def _expect(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise _MalformedError(f"expected a JSON {kind.__name__}, got {str(value)[:40]}")
    return value


class _Binary:
    """Reads numbers off bytes; raises ``struct.error`` behind their end."""

    def __init__(self, content: bytes, number: str) -> None:
        self._content = content
        self._number = struct.Struct(number)
        self.position = 0

    @property
    def is_over(self) -> bool:
        return self.position == len(self._content)

    def number(self) -> int:
        (value,) = self._number.unpack_from(self._content, self.position)
        self.position += self._number.size
        return int(value)

    def byte(self) -> int:
        (value,) = struct.unpack_from("B", self._content, self.position)
        self.position += 1
        return int(value)

    def skip(self, count: int) -> None:
        if count > len(self._content) - self.position:
            raise struct.error
        self.position += count

    def counted(self) -> range:
        """Return the numbers of the items that follow; each takes a byte at least."""
        count = self.number()
        if count > len(self._content) - self.position:
            raise struct.error
        return range(count)


def _bincode(content: bytes) -> list[Session] | None:
    """Return the sessions of dbcop's binary form; None if the bytes are not of this form up to their end."""
    binary = _Binary(content, "<Q")
    try:
        binary.skip(5 * 8)
        for _ in range(3):
            binary.skip(binary.number())
        sessions = [
            [_bincode_transaction(binary) for _ in binary.counted()] for _ in binary.counted()
        ]
    except (struct.error, _MalformedError):
        return None
    return sessions if binary.is_over else None


def _bincode_transaction(binary: _Binary) -> Transaction:
    micros = []
    for _ in binary.counted():
        f = WRITE if _flag(binary) else READ
        micro = Micro(f, binary.number(), binary.number())
        if _flag(binary):
            micros.append(micro)
    return Transaction(0, OK if _flag(binary) else FAIL, micros)


def _flag(binary: _Binary) -> bool:
    byte = binary.byte()
    if byte > 1:
        raise _MalformedError("a flag is neither 0 nor 1")
    return byte == 1


def _polysi(text: str) -> list[Session]:
    sessions: dict[int, Session] = {}
    transactions: dict[tuple[int, int], Transaction] = {}
    for line, said in enumerate(text.splitlines(), start=1):
        if not said.strip():
            continue
        match = _POLYSI.fullmatch(said.strip())
        if match is None:
            raise _MalformedError(f"line {line} is not r(key,value,session,transaction)")
        key, value, session, number = map(int, match.groups()[1:])
        name = (session, number)
        if name not in transactions:
            transactions[name] = Transaction(line, OK)
            sessions.setdefault(session, []).append(transactions[name])
        transactions[name].micros.append(Micro(Keyword(match[1]), key, value))
    return list(sessions.values())


def _hist(text: str) -> list[Session]:
    sessions: list[Session] = [[]]
    for line, said_line in enumerate(text.splitlines(), start=1):
        said = said_line.partition("//")[0].strip()
        if said and not said.strip("-"):
            sessions.append([])
            continue
        position = 0
        while position < len(said):
            match = _HIST_TRANSACTION.match(said, position)
            if match is None:
                raise _MalformedError(f"line {line} is not transactions in brackets")
            outcome = FAIL if match[2] else OK
            sessions[-1].append(Transaction(line, outcome, _hist_events(match[1], line)))
            position = match.end()
    return sessions


def _hist_events(said: str, line: int) -> list[Micro]:
    micros, position = [], 0
    while position < len(said):
        match = _HIST_EVENT.match(said, position)
        if match is None:
            raise _MalformedError(f"line {line} has an event that is not x:=1, x==1 or x==?")
        version = match[3] or match[4]
        value = None if version == "?" else int(version)
        micros.append(Micro(WRITE if match[2] else READ, match[1], value))
        position = match.end()
    return micros


def _cobra(file: Path) -> Session:
    """Return the session of a log; a transaction that does not end is of unknown outcome."""
    binary = _Binary(file.read_bytes(), ">Q")
    session: Session = []
    try:
        while not binary.is_over:
            _cobra_entry(binary, session)
    except (struct.error, IndexError):
        raise _MalformedError(f"{file.name} is cut off or not a log of Cobra") from None
    return session


def _cobra_entry(binary: _Binary, session: Session) -> None:
    kind = chr(binary.byte())
    if kind == "S":
        binary.number()
        session.append(Transaction(0, INFO))
    elif kind == "C":
        binary.number()
        session[-1].outcome = OK
    elif kind == "W":
        write, key, _ = binary.number(), binary.number(), binary.number()
        session[-1].micros.append(Micro(WRITE, key, write))
    elif kind == "R":
        writer, write, key, _ = (binary.number() for _ in range(4))
        is_initial = writer in _INITIAL_TRANSACTIONS and write not in _COLLECTED
        if write not in _COLLECTED:
            session[-1].micros.append(Micro(READ, key, None if is_initial else write))
    else:
        raise _MalformedError(f"an entry of a log begins with {kind!r}, expected S, C, W or R")

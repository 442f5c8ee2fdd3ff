"""ZooKeeper's transaction log, read from its files: every committed change of metadata in zxid
order.

The format (ZooKeeper 3.4 to 3.9, found in its Java sources and checked against real logs; all
numbers big-endian). A file ``log.<hex zxid of its first transaction>`` is preallocated with zeros.
It starts with 16 bytes: ``ZKLG``, int version 2, long dbid. Then records: long Adler-32 of the
payload, int length, payload, byte ``B``. A length of zero ends the file. The payload is a header
(long session, int cxid, long zxid, long wall-clock ms, int type), the transaction's body, and since
3.6 a digest of 12 bytes that we ignore.

What is not obvious:

* A failed multi is logged too, and its parts before the failing one look as if they had been
  applied. Any part of type error means that nothing of it happened.
* The body of ``check`` holds the expected version plus one.
* A closed session lists the ephemerals it took along; servers before 3.6 do not, so we keep count
  ourselves.

Of an ensemble each member has a log of its own: ``nemesis.history.zookeeper_ensemble`` says what they committed.

Limits: a log is read from its first transaction; a server whose old logs were purged is reported as
a problem, for then the znodes at the start are unknown. A server that is killed while it writes leaves a torn record at
the end of a file, and nobody was told of it: that is tolerated there and nowhere else.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final

MAGIC: Final = b"ZKLG"
FILE_HEADER: Final = struct.Struct(">4siq")
RECORD_HEADER: Final = struct.Struct(">qi")
TRANSACTION_HEADER: Final = struct.Struct(">qiqqi")
END_OF_RECORD: Final = b"B"
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
EPOCH_BITS: Final = 32
DIGEST_BYTES: Final = 12
CURRENT_EPOCH: Final = "currentEpoch"
"""The name of a file beside the logs of an ensemble's member."""


class TransactionType(IntEnum):
    ERROR = -1
    CREATE_SESSION = -10
    CLOSE_SESSION = -11
    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21


CREATES: Final = frozenset(
    {
        TransactionType.CREATE,
        TransactionType.CREATE2,
        TransactionType.CREATE_CONTAINER,
        TransactionType.CREATE_TTL,
    }
)
DELETES: Final = frozenset({TransactionType.DELETE, TransactionType.DELETE_CONTAINER})

ERROR_NAMES: Final = {
    -1: "SYSTEMERROR",
    -2: "RUNTIMEINCONSISTENCY",
    -3: "DATAINCONSISTENCY",
    -4: "CONNECTIONLOSS",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -7: "OPERATIONTIMEOUT",
    -8: "BADARGUMENTS",
    -101: "NONODE",
    -102: "NOAUTH",
    -103: "BADVERSION",
    -108: "NOCHILDRENFOREPHEMERALS",
    -110: "NODEEXISTS",
    -111: "NOTEMPTY",
    -112: "SESSIONEXPIRED",
    -113: "INVALIDCALLBACK",
    -114: "INVALIDACL",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -119: "NOTREADONLY",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One change, or one part of a multi. ``version``: the new one of setData, the demanded one of
    check.
    """

    type: int
    path: str | None = None
    data: bytes | None = None
    ephemeral: bool = False
    version: int | None = None
    error: int = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """One record of the log. ``session`` is signed, as Java prints and kazoo returns it."""

    session: int
    cxid: int
    zxid: int
    wall_ms: int
    type: int
    checksum: int
    operations: tuple[Operation, ...] = ()
    timeout_ms: int = 0
    """Of a created session."""
    closed_paths: tuple[str, ...] | None = None
    """Of a closed session: its ephemerals, if the server wrote them down."""


@dataclass(slots=True)
class LogContents:
    """What a member's log directory holds, and what is wrong with it (a sentence each)."""

    transactions: list[Transaction] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    current_epoch: int | None = None
    """Of the last leader whose history the member has taken for its own; None when it does not say."""


class _Jute:
    """A cursor over Jute's encoding. Raises struct.error or ValueError past the end."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.position = 0

    def read_int(self) -> int:
        (value,) = struct.unpack_from(">i", self.payload, self.position)
        self.position += 4
        return int(value)

    def read_bool(self) -> bool:
        self.position += 1
        return self.payload[self.position - 1] != 0

    def read_buffer(self) -> bytes | None:
        length = self.read_int()
        if length < 0:
            return None
        end = self.position + length
        if end > len(self.payload):
            raise ValueError("a buffer reaches past its record")
        self.position = end
        return self.payload[end - length : end]

    def read_string(self) -> str:
        return (self.read_buffer() or b"").decode("utf-8", "backslashreplace")

    @property
    def left(self) -> int:
        return len(self.payload) - self.position


def read_log(directory: Path) -> LogContents:
    """Read all ``log.*`` files of one member's ``version-2`` directory, in order. Never raises for
    damage.
    """
    contents = LogContents()
    files = sorted(
        (path for path in directory.glob("log.*") if _first_zxid(path) is not None),
        key=lambda path: _first_zxid(path) or 0,
    )
    if not files:
        contents.problems.append(f"there is no ZooKeeper transaction log in {directory}")
    for path in files:
        _read_file(path, contents)
    with suppress(OSError, ValueError):
        contents.current_epoch = int((directory / CURRENT_EPOCH).read_text())
    return contents


def _first_zxid(path: Path) -> int | None:
    try:
        return int(path.name.removeprefix("log."), 16)
    except ValueError:
        return None


def _read_file(path: Path, contents: LogContents) -> None:
    """Append the file's transactions; damage anywhere but at the end of the file is a problem."""
    raw = path.read_bytes()
    if len(raw) < FILE_HEADER.size:
        return
    if FILE_HEADER.unpack_from(raw)[:2] != (MAGIC, 2):
        contents.problems.append(f"{path} is not a ZooKeeper transaction log")
        return
    position = FILE_HEADER.size
    while True:
        end, payload, checksum = _record(raw, position)
        if end == position:
            return
        if payload is None:
            if any(raw[end : end + 65536]):
                contents.problems.append(f"{path} is damaged at byte {position}")
            return
        try:
            contents.transactions.append(_parse(payload, checksum))
        except (struct.error, ValueError, IndexError) as error:
            contents.problems.append(f"{path} has a foreign record at byte {position}: {error}")
            return
        position = end


def _record(raw: bytes, position: int) -> tuple[int, bytes | None, int]:
    """Return (end, payload, checksum) of the record at ``position``.

    ``end == position`` says that the log ends here; a payload of None that the record is torn.
    """
    if position + RECORD_HEADER.size > len(raw):
        return (len(raw), None, 0) if any(raw[position:]) else (position, None, 0)
    checksum, length = RECORD_HEADER.unpack_from(raw, position)
    if length == 0:
        # Zeros follow the last record. A checksum without a length is a record that was being
        # written.
        return (position, None, 0) if checksum == 0 else (position + RECORD_HEADER.size, None, 0)
    start = position + RECORD_HEADER.size
    if not 0 < length <= MAX_RECORD_BYTES:
        return start, None, 0
    end = start + length + 1
    payload = raw[start : end - 1]
    if end > len(raw):
        return len(raw), None, 0
    is_intact = zlib.adler32(payload) == checksum and raw[end - 1 : end] == END_OF_RECORD
    return end, payload if is_intact else None, checksum


def _parse(payload: bytes, checksum: int) -> Transaction:
    session, cxid, zxid, wall_ms, kind = TRANSACTION_HEADER.unpack_from(payload)
    body = _Jute(payload[TRANSACTION_HEADER.size :])
    operations: tuple[Operation, ...] = ()
    timeout_ms = 0
    closed: tuple[str, ...] | None = None
    if kind == TransactionType.CREATE_SESSION:
        timeout_ms = body.read_int()
    elif kind == TransactionType.CLOSE_SESSION:
        closed = _closed_paths(body)
    elif kind == TransactionType.MULTI:
        operations = tuple(_part(body) for _ in range(body.read_int()))
    else:
        operations = (_operation(kind, body),)
    return Transaction(session, cxid, zxid, wall_ms, kind, checksum, operations, timeout_ms, closed)


def _part(body: _Jute) -> Operation:
    kind = body.read_int()
    return _operation(kind, _Jute(body.read_buffer() or b""))


def _closed_paths(body: _Jute) -> tuple[str, ...] | None:
    """The deleted paths, or None if the body holds no list (but perhaps a digest)."""
    if body.left == 0:
        return None
    try:
        paths = tuple(body.read_string() for _ in range(body.read_int()))
    except (struct.error, ValueError):
        return None
    return paths if body.left in (0, DIGEST_BYTES) else None


def _operation(kind: int, body: _Jute) -> Operation:
    if kind in CREATES:
        path, data = body.read_string(), body.read_buffer()
        for _ in range(max(body.read_int(), 0)):
            body.read_int(), body.read_string(), body.read_string()
        ephemeral = kind in (TransactionType.CREATE, TransactionType.CREATE2) and body.read_bool()
        return Operation(kind, path, data, ephemeral=ephemeral, version=0)
    if kind in DELETES:
        return Operation(kind, body.read_string())
    if kind == TransactionType.SET_DATA:
        path, data = body.read_string(), body.read_buffer()
        return Operation(kind, path, data, version=body.read_int())
    if kind == TransactionType.CHECK:
        return Operation(kind, body.read_string(), version=body.read_int() - 1)
    if kind == TransactionType.ERROR:
        return Operation(kind, error=body.read_int())
    return Operation(kind)

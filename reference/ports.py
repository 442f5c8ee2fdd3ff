"""What a broker wants of the world outside its process, as protocols.

Clock and timers are the asyncio loop's (``loop.time()``), connections are its ``create_connection`` and
``create_server``, randomness is a ``random.Random`` and the wall clock a callable, all given as
arguments. The rest is here. Real ones live in ``nemesis.reference.adapters``; simulated ones with the harness.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

WallClock = Callable[[], int]
"""Milliseconds since 1970."""


TEMPORARY: Final = ".tmp"


class DiskUsage(NamedTuple):
    """In bytes: the size of a volume, and what of it can still be written."""

    total_bytes: int
    usable_bytes: int


class Files(Protocol):
    """The bytes of files, by path ('/'-separated). Calls block; they raise OSError when the medium fails."""

    def append(self, path: str, data: bytes) -> None: ...
    def read(self, path: str, offset: int, size: int) -> bytes: ...
    def size(self, path: str) -> int: ...
    def exists(self, path: str) -> bool: ...
    def truncate(self, path: str, size: int) -> None: ...
    def fsync(self, path: str) -> None: ...
    def close(self, path: str) -> None:
        """Close the handles that are open for the path; for a directory, for all paths below it."""


class Directories(Protocol):
    """The names of files and directories, and the volume that holds them. Calls raise OSError as ``Files`` does."""

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted, without temporary files; empty when it does not exist."""

    def make_directory(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its content; an absent path is not an error."""

    def usage(self, path: str) -> DiskUsage:
        """Return the usage of the volume that holds the path."""


class AtomicFiles(Protocol):
    """Files that are replaced as a whole: after a crash each file is the old one or the new one."""

    def replace(self, path: str, data: bytes) -> None:
        """Write the whole file and sync it. A temporary file named ``<path>.tmp`` may stay beside it."""

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        """Replace each file, in any order, and wait for the medium once; return the files that failed."""


class Disk(Protocol):
    """A disk in three parts, which act on the same files. A function takes only the part that it needs."""

    @property
    def files(self) -> Files: ...
    @property
    def directories(self) -> Directories: ...
    @property
    def atomic(self) -> AtomicFiles: ...


class SocketBuffers(Protocol):
    """The sizes of a socket's buffers in the operating system."""

    def set(self, socket: Any, *, send_bytes: int = -1, receive_bytes: int = -1) -> None:
        """Set them on a transport's or server's socket; −1 leaves one as it is."""


Job = Callable[[], Awaitable[None] | None]
"""What it returns is awaited before it counts as done."""


class Scheduler(Protocol):
    """Runs work at a time; a job that fails is logged."""

    def schedule(self, name: str, job: Job, *, period_s: float) -> None:
        """Run it again and again, for the first time after one period."""

    def schedule_once(self, name: str, job: Job, *, delay_s: float) -> None:
        """Run it once, unless the scheduler is shut down before."""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class ZnodeStat:
    """Of ZooKeeper's Stat what Kafka reads. ``version`` is the data version, ``ctime_ms`` in ms since 1970."""

    czxid: int
    mzxid: int
    version: int
    ephemeral_owner: int
    ctime_ms: int


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    path: str
    version: int


ZooKeeperOp = Create | SetData | Delete | Check
SessionListener = Callable[[SessionState], Awaitable[None] | None]
"""Called on the loop. What it returns for EXPIRED is awaited before the next session is opened."""
Watch = Callable[[], None]
"""Called once, on the loop, when the watched thing changed (or the watch was lost with the connection)."""


class ZnodeReads(Protocol):
    """Reads of one ZooKeeper session. A read with a watch sets the watch for the path."""

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat]: ...
    async def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        """Return the content of each znode, None for an absent znode; sets no watch."""

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None: ...
    async def get_children(self, path: str, watch: Watch | None = None) -> list[str]: ...


class ZnodeWrites(Protocol):
    """Writes of one ZooKeeper session. Version -1 matches every version."""

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, ZnodeStat]: ...
    async def set_data(self, path: str, data: bytes, version: int = -1) -> ZnodeStat: ...
    async def delete(self, path: str, version: int = -1) -> None: ...
    async def multi(self, ops: Sequence[ZooKeeperOp]) -> list[ZnodeStat | None]:
        """Execute all operations or none; return the stat left by each Create and SetData, None for the others.

        Raises ``MultiError``, which names the first operation that failed and its error.
        """


class ZooKeeperClient(Protocol):
    """One ZooKeeper session after another, with reads and writes. Errors are those of ``nemesis.reference.zk.errors``.

    Watches and completions are delivered on the loop in the order in which the server sent them. A session that
    expired is finished (its EXPIRED listeners have run, and their awaitables are done) before the next one is
    opened. Every operation that was under way then has failed with ``SessionExpiredError`` by that time.
    """

    @property
    def session_id(self) -> int: ...
    @property
    def reads(self) -> ZnodeReads: ...
    @property
    def writes(self) -> ZnodeWrites: ...
    async def start(self) -> None: ...
    async def close(self) -> None: ...
    def add_session_listener(self, listener: SessionListener) -> None: ...

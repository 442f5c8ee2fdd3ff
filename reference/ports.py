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


class Disk(Protocol):
    """Files by path ('/'-separated). Calls block; an OSError of the medium is raised as OSError."""

    def append(self, path: str, data: bytes) -> None: ...
    def read(self, path: str, offset: int, size: int) -> bytes: ...
    def size(self, path: str) -> int: ...
    def truncate(self, path: str, size: int) -> None: ...
    def fsync(self, path: str) -> None: ...
    def replace(self, path: str, data: bytes) -> None:
        """Write the whole file anew, atomically and synced: after a crash it is the old one or the new one.

        A file named ``<path>.tmp`` may stay beside it.
        """

    def replace_all(self, files: Mapping[str, bytes]) -> Mapping[str, OSError]:
        """``replace`` each of them, in any order, and wait for the medium once; return those that failed."""

    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> Sequence[str]:
        """Names in a directory, sorted, without what ``replace`` left; empty when it does not exist."""

    def make_directory(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it; absent is not an error."""

    def usage(self, path: str) -> DiskUsage:
        """Of the volume that the path is on."""

    def close(self, path: str) -> None:
        """Forget any handle kept for the path (a directory: for all below it)."""


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


class ZooKeeperClient(Protocol):
    """One ZooKeeper session after another. Errors are those of ``nemesis.reference.zk.errors``.

    Watches and completions are delivered on the loop in the order in which the server sent them. A session that
    expired is finished (its EXPIRED listeners have run, and what they returned is done) before the next one is
    opened. Every operation that was under way then has failed with ``SessionExpiredError`` by that time.
    """

    @property
    def session_id(self) -> int: ...
    async def start(self) -> None: ...
    async def close(self) -> None: ...
    def add_session_listener(self, listener: SessionListener) -> None: ...
    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat]: ...
    async def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        """What each znode holds, None where there is none; sets no watch."""

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None: ...
    async def get_children(self, path: str, watch: Watch | None = None) -> list[str]: ...
    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, ZnodeStat]: ...
    async def set_data(self, path: str, data: bytes, version: int = -1) -> ZnodeStat: ...
    async def delete(self, path: str, version: int = -1) -> None: ...
    async def multi(self, ops: Sequence[ZooKeeperOp]) -> list[ZnodeStat | None]:
        """All or nothing: the stat left by each Create and SetData, None for the others.

        Raises ``MultiError`` naming the first op that failed and its error.
        """

"""Programs for a few ZooKeeper clients, and what each client saw, made comparable.

A step is one operation of one client, a burst of several at once, or something that happens to its session. After each
step every client writes to a znode of its own: its reply comes behind every watch that the step fired, on a server that
has applied the step. So the order of watches and replies is the same on every correct server.

Made comparable: zxids become their rank among those of the program, sessions the client that had them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypothesis import strategies as st

from nemesis.reference.ports import (
    Check,
    Create,
    Delete,
    SessionState,
    SetData,
    Watch,
    ZnodeStat,
    ZooKeeperClient,
    ZooKeeperOp,
)
from nemesis.reference.zk.errors import MultiError, ZooKeeperError

CLIENTS = 3
PATHS = ("/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/z")
"""Few, so that operations meet."""


@dataclass(frozen=True)
class Read:
    kind: str
    path: str
    has_watch: bool


@dataclass(frozen=True)
class ReadAll:
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Sequential:
    path: str
    ephemeral: bool


@dataclass(frozen=True)
class Multi:
    ops: tuple[ZooKeeperOp, ...]


@dataclass(frozen=True)
class Burst:
    """Sent at once, without waiting for the replies."""

    operations: tuple[Any, ...]


@dataclass(frozen=True)
class EndSession:
    """By somebody else, who takes it over."""


@dataclass(frozen=True)
class LoseConnection:
    """The session lives on."""


@dataclass(frozen=True)
class Reopen:
    """The client closes; another one takes its place."""


@dataclass(frozen=True)
class Step:
    client: int
    action: Any


class Side(Protocol):
    """A running ZooKeeper. ``prefix`` is an empty znode of this program alone."""

    prefix: str
    clients: list[ZooKeeperClient]

    async def open(self) -> ZooKeeperClient: ...
    async def end_session(self, session_id: int) -> None: ...
    async def lose_connection(self, index: int) -> None: ...


paths = st.sampled_from(PATHS)
contents = st.sampled_from([b"", b"1", b"22"])
versions = st.sampled_from([-1, -1, 0, 1, 2])
creates = st.builds(Create, paths, contents, st.booleans())
writes = (
    creates | st.builds(SetData, paths, contents, versions) | st.builds(Delete, paths, versions)
)
multis = st.lists(writes | st.builds(Check, paths, versions), min_size=1, max_size=5)
reads = st.builds(
    Read, st.sampled_from(["get", "exists", "children", "children"]), paths, st.booleans()
)
read_alls = st.builds(ReadAll, st.lists(paths, min_size=1, max_size=4).map(tuple))
special = st.builds(Delete, st.sampled_from(["//zookeeper", "//zookeeper/quota"]), versions)
operations = (
    creates
    | writes
    | st.builds(Sequential, st.sampled_from(["/a/s-", "/b/"]), st.booleans())
    | reads
    | reads
    | read_alls
    | st.builds(Multi, multis.map(tuple))
    | special
)
bursts = st.builds(Burst, st.lists(operations, min_size=2, max_size=6).map(tuple))
clients = st.integers(0, CLIENTS - 1)
operation_steps = st.builds(Step, clients, operations | operations | operations | bursts)
session_steps = st.builds(
    Step, clients, st.sampled_from([EndSession(), LoseConnection(), Reopen()])
)


@dataclass
class Player:
    """Plays a program on a side. ``log`` holds what each client saw, in its order."""

    side: Side
    log: list[list[tuple[Any, ...]]] = field(default_factory=lambda: [[] for _ in range(CLIENTS)])
    owners: dict[int, str] = field(default_factory=dict)

    async def play(self, program: Sequence[Step]) -> tuple[Any, ...]:
        """Return the logs, made comparable."""
        side = self.side
        for index, client in enumerate(side.clients):
            self._own(index, client)
            await client.writes.create(barrier_path(side.prefix, index), b"")
        for number, step in enumerate(program):
            await self._take(number, step)
            await self._barrier()
        return comparable(self.log, self.owners)

    async def _barrier(self, without: int | None = None) -> None:
        await asyncio.gather(
            *(
                client.writes.set_data(barrier_path(self.side.prefix, index), b"")
                for index, client in enumerate(self.side.clients)
                if index != without
            )
        )

    async def _take(self, number: int, step: Step) -> None:
        index, client = step.client, self.side.clients[step.client]
        log = self.log[index]
        match step.action:
            case EndSession():
                before = [len(entries) for entries in self.log]
                # Of an ensemble's members, one may take the owner in again before another has closed the session.
                async with _returned(client, in_next_session=True):
                    await self.side.end_session(client.session_id)
                self._own(index, client)
                self._sort_since(before)
            case LoseConnection():
                before = [len(entries) for entries in self.log]
                session = client.session_id
                async with _returned(client, in_next_session=False):
                    await self.side.lose_connection(index)
                log.append(("same session", session == client.session_id))
                self._sort_since(before)
            case Reopen():
                before = [len(entries) for entries in self.log]
                await client.close()
                await self._refused(log, client)
                await self._barrier(without=index)
                self.side.clients[index] = await self.side.open()
                self._own(index, self.side.clients[index])
                self._sort_since(before)
            case Burst(burst):
                # Their zxids tell in which order the server took them. kazoo hands the reply to a create over
                # one turn of the loop late, and a watch may run between a reply and the task that waits for it.
                replies: list[tuple[Any, ...]] = []
                watches: list[tuple[Any, ...]] = []
                await asyncio.gather(
                    *(
                        self._do(f"{number}.{position}", client, operation, replies, watches)
                        for position, operation in enumerate(burst)
                    )
                )
                await client.reads.exists("/")
                log.extend(sorted(replies, key=repr))
                log.extend(watches)
            case operation:
                await self._do(str(number), client, operation, log, log)

    async def _refused(self, log: list[tuple[Any, ...]], client: ZooKeeperClient) -> None:
        try:
            await client.reads.get("/")
        except ZooKeeperError as error:
            log.append(("closed", type(error).__name__))

    def _sort_since(self, before: list[int]) -> None:
        """The end of a session deletes its ephemerals, and the loss of a connection fires watches, in any order."""
        for entries, start in zip(self.log, before, strict=True):
            entries[start:] = sorted(entries[start:], key=repr)

    def _own(self, index: int, client: ZooKeeperClient) -> None:
        self.owners[client.session_id] = f"client {index}"

    async def _do(
        self,
        name: str,
        client: ZooKeeperClient,
        operation: Any,
        log: list[tuple[Any, ...]],
        watches: list[tuple[Any, ...]],
    ) -> None:
        """Note the result, and the watch when it fires."""

        def fired() -> None:
            watches.append(("watch", name))

        try:
            result = await self._call(client, operation, fired)
        except MultiError as error:
            result = ("MultiError", error.index, type(error.error).__name__, error.code)
        except ZooKeeperError as error:
            result = (type(error).__name__, error.code)
        log.append(("reply", name, result))

    async def _call(self, client: ZooKeeperClient, operation: Any, watch: Watch) -> Any:
        prefix = self.side.prefix

        def full(path: str) -> str:
            return path[1:] if path.startswith("//") else prefix + path

        match operation:
            case Read(kind, path, has_watch):
                read: dict[str, Callable[..., Awaitable[Any]]] = {
                    "get": client.reads.get,
                    "exists": client.reads.exists,
                    "children": client.reads.get_children,
                }
                return await read[kind](full(path), watch if has_watch else None)
            case ReadAll(paths):
                return await client.reads.get_all([full(path) for path in paths])
            case Create(path, data, ephemeral):
                created, stat = await client.writes.create(full(path), data, ephemeral=ephemeral)
                return created.removeprefix(prefix), stat
            case Sequential(path, ephemeral):
                created, stat = await client.writes.create(
                    full(path), b"", ephemeral=ephemeral, sequential=True
                )
                return created.removeprefix(prefix), stat
            case SetData(path, data, version):
                return await client.writes.set_data(full(path), data, version)
            case Delete(path, version):
                return await client.writes.delete(full(path), version)
            case Multi(ops):
                return await client.writes.multi([_moved(op, full(op.path)) for op in ops])
        raise AssertionError(operation)


def barrier_path(prefix: str, index: int) -> str:
    """Where a client writes to know that it has seen everything so far."""
    return f"{prefix}/barrier-{index}"


def _moved(op: ZooKeeperOp, path: str) -> ZooKeeperOp:
    match op:
        case Create(_, data, ephemeral):
            return Create(path, data, ephemeral)
        case SetData(_, data, version):
            return SetData(path, data, version)
        case Delete(_, version):
            return Delete(path, version)
        case Check(_, version):
            return Check(path, version)


class _returned:  # noqa: N801
    """Waits at its end until the client has lost its connection and is connected again."""

    def __init__(self, client: ZooKeeperClient, *, in_next_session: bool) -> None:
        self._client = client
        self._former = client.session_id if in_next_session else 0
        self._back = asyncio.Event()

    async def __aenter__(self) -> None:
        self._client.add_session_listener(self._listen)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.wait_for(self._back.wait(), 30)

    def _listen(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED and self._client.session_id != self._former:
            self._back.set()


def comparable(log: list[list[tuple[Any, ...]]], owners: dict[int, str]) -> tuple[Any, ...]:
    """Put ranks in the place of zxids and clients in the place of sessions."""
    zxids: set[int] = set()

    def collect(value: Any) -> None:
        if isinstance(value, ZnodeStat):
            zxids.update((value.czxid, value.mzxid))
        elif isinstance(value, list | tuple):
            for item in value:
                collect(item)

    collect(log)
    ranks = {zxid: rank for rank, zxid in enumerate(sorted(zxids))}

    def translate(value: Any) -> Any:
        if isinstance(value, ZnodeStat):
            owner = owners.get(value.ephemeral_owner, value.ephemeral_owner)
            return ("stat", ranks[value.czxid], ranks[value.mzxid], value.version, owner)
        if isinstance(value, list | tuple):
            return tuple(translate(item) for item in value)
        return value

    return tuple(translate(entries) for entries in log)

"""What a member does for the clients that are connected to it.

Requests of a connection are answered in the order in which they came. Writes go to the leader at once; a read waits
until the writes before it are done and is then answered from this member's own tree, which may be behind the leader's.
A ping waits in the same line, as in ZooKeeper's ``CommitProcessor``: a member that cannot commit falls silent.

When a transaction is applied, the watches that it triggers are told first and its reply is sent afterwards.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from nemesis.history.zookeeper_log import Transaction, TransactionType
from nemesis.simulation.zookeeper.channel import FROM_CLIENT, Channel
from nemesis.simulation.zookeeper.messages import (
    AreYouThere,
    CloseSession,
    Code,
    Connect,
    Connected,
    Exists,
    Fired,
    Get,
    GetAll,
    GetChildren,
    IAmHere,
    OpenSession,
    Outcome,
    Ping,
    Pong,
    Read,
    Reply,
    Request,
    Submission,
    WatchKind,
    Write,
)
from nemesis.simulation.zookeeper.tree import Tree
from nemesis.simulation.zookeeper.watches import Watches


class Quorum(Protocol):
    """The way from a member's clients to the leader, whatever the member's role."""

    @property
    def is_serving(self) -> bool: ...
    def submit(self, number: int, session: int, cxid: int, body: Submission) -> None:
        """Have it become a transaction; ``number`` comes back with it."""

    def revalidate(self, number: int, session: int) -> None:
        """Ask whether the session lives and take it over; the answer goes to ``ClientService.revalidated``."""

    def touch(self, session: int) -> None: ...


@dataclass(slots=True, eq=False)
class _Pending:
    """A request in a connection's line. ``xid`` of a ping is -2, as in ZooKeeper."""

    connection: _Connection
    xid: int
    read: Read | GetAll | None = None
    reply: Reply | None = None


_PING_XID = -2


class _Connection:
    """A client's connection: at most one session, and the requests under way."""

    __slots__ = ("channel", "early", "line", "session")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.session = 0
        self.line: deque[_Pending] = deque()
        self.early: list[Request] = []
        """Requests that came before the session was there."""


class ClientService:
    """The clients' side of one incarnation of a member."""

    def __init__(
        self,
        tree: Tree,
        *,
        first_session: int,
        session_timeouts_ms: tuple[int, int],
    ) -> None:
        """Sessions are numbered from ``first_session``; their time-outs are kept within the bounds given."""
        self._tree = tree
        self._next_session = first_session
        self._session_timeouts_ms = session_timeouts_ms
        self._quorum: Quorum | None = None
        self._watches: Watches[_Connection] = Watches(_tell)
        self._connections: dict[Channel, _Connection] = {}
        self._by_session: dict[int, _Connection] = {}
        self._numbers = 0
        self._submitted: dict[int, _Pending] = {}
        self._arriving: dict[int, tuple[_Connection, int, int]] = {}
        """Connections whose session is being opened or revalidated: the session and its time-out."""

    @property
    def sessions(self) -> tuple[int, ...]:
        """The sessions that are connected here, in order."""
        return tuple(sorted(self._by_session))

    def serve(self, quorum: Quorum | None) -> None:
        """Take a new way to the leader. The clients of the former one are sent away."""
        self._quorum = quorum
        for channel in self._connections:
            channel.close()
        self._watches = Watches(_tell)
        for table in (self._connections, self._by_session, self._submitted, self._arriving):
            table.clear()

    def accept(self) -> Channel:
        """Return a protocol for a client's new connection."""
        return Channel(FROM_CLIENT, self._receive, self._lost)

    def applied(self, transaction: Transaction, number: int, outcomes: tuple[Outcome, ...]) -> None:
        """A transaction took effect on the tree; ``number`` is the one it was submitted under here, 0 if elsewhere."""
        self._watches.trigger(transaction)
        if transaction.type == TransactionType.CREATE_SESSION:
            self.revalidated(number, is_alive=True)
            return
        if (pending := self._submitted.pop(number, None)) is not None:
            self._complete(pending, transaction.zxid, outcomes)
        if transaction.type == TransactionType.CLOSE_SESSION:
            ended = self._by_session.get(transaction.session)
            if ended is not None:
                self._drop(ended)

    def revalidated(self, number: int, *, is_alive: bool) -> None:
        """A session is there, or was over before its client came back."""
        if (arrival := self._arriving.pop(number, None)) is None:
            return
        connection, session, timeout_ms = arrival
        if not connection.channel.is_open:
            return
        if not is_alive:
            connection.channel.send(Connected(0, 0))
            self._drop(connection)
            return
        connection.session = session
        self._by_session[session] = connection
        connection.channel.send(Connected(session, timeout_ms))
        early, connection.early = connection.early, []
        for request in early:
            self._take(connection, request)

    # What clients send

    def _receive(self, channel: Channel, message: Any) -> None:
        connection = self._connections.get(channel)
        if isinstance(message, AreYouThere):
            channel.send(IAmHere())
        elif isinstance(message, Connect):
            self._arrive(channel, message)
        elif connection is None:
            channel.close()
        elif isinstance(message, Request):
            if connection.session:
                self._take(connection, message)
            else:
                connection.early.append(message)
        elif isinstance(message, Ping):
            self._touch(connection)
            connection.line.append(_Pending(connection, _PING_XID))
            self._flush(connection)

    def _arrive(self, channel: Channel, message: Connect) -> None:
        quorum = self._quorum
        # A client must not see time go back: it is sent to a member that knows at least what it has seen.
        if quorum is None or not quorum.is_serving or message.last_zxid > self._tree.last_zxid:
            channel.close()
            return
        connection = self._connections[channel] = _Connection(channel)
        least, most = self._session_timeouts_ms
        timeout_ms = min(max(message.timeout_ms, least), most)
        self._numbers += 1
        session = message.session_id
        if session:
            if (former := self._by_session.get(session)) is not None:
                self._drop(former)
            self._arriving[self._numbers] = connection, session, timeout_ms
            quorum.revalidate(self._numbers, session)
        else:
            session, self._next_session = self._next_session, self._next_session + 1
            self._arriving[self._numbers] = connection, session, timeout_ms
            quorum.submit(self._numbers, session, 0, OpenSession(timeout_ms))

    def _take(self, connection: _Connection, request: Request) -> None:
        if not connection.channel.is_open or self._quorum is None:
            return
        self._touch(connection)
        body = request.body
        if isinstance(body, Write | CloseSession):
            pending = _Pending(connection, request.xid)
            connection.line.append(pending)
            self._numbers += 1
            self._submitted[self._numbers] = pending
            self._quorum.submit(self._numbers, connection.session, request.xid, body)
        else:
            connection.line.append(_Pending(connection, request.xid, read=body))
            self._flush(connection)

    def _touch(self, connection: _Connection) -> None:
        if self._quorum is not None and connection.session:
            self._quorum.touch(connection.session)

    def _lost(self, channel: Channel) -> None:
        if (connection := self._connections.get(channel)) is not None:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        """End the connection. Its session lives on, unless somebody ends it; what it wrote may take effect."""
        connection.channel.close()
        self._connections.pop(connection.channel, None)
        if self._by_session.get(connection.session) is connection:
            del self._by_session[connection.session]
        self._watches.forget(connection)

    # What clients are told

    def _complete(self, pending: _Pending, zxid: int, outcomes: tuple[Outcome, ...]) -> None:
        connection = pending.connection
        if any(outcome.error == Code.SESSION_MOVED for outcome in outcomes):
            self._drop(connection)
            return
        pending.reply = Reply(pending.xid, zxid, outcomes=outcomes)
        self._flush(connection)

    def _flush(self, connection: _Connection) -> None:
        """Answer from the head of the line up to the first write that is not done."""
        line, channel = connection.line, connection.channel
        while line:
            head = line[0]
            if head.xid == _PING_XID:
                channel.send(Pong())
            elif head.read is not None:
                channel.send(self._answer(connection, head.xid, head.read))
            elif head.reply is not None:
                channel.send(head.reply)
            else:
                return
            line.popleft()

    def _answer(self, connection: _Connection, xid: int, read: Read | GetAll) -> Reply:
        zxid = self._tree.last_zxid
        if isinstance(read, GetAll):
            nodes = [self._tree.get(path) for path in read.paths]
            return Reply(xid, zxid, znodes=tuple(n and (n.data, n.stat) for n in nodes))
        path = read.path
        node = self._tree.get(path)
        if read.watch and (node is not None or isinstance(read, Exists)):
            if isinstance(read, GetChildren):
                self._watches.watch_children(path, connection)
            else:
                self._watches.watch_data(path, connection)
        if node is None:
            return Reply(xid, zxid, Code.NO_NODE)
        match read:
            case Get():
                return Reply(xid, zxid, data=node.data, stat=node.stat)
            case Exists():
                return Reply(xid, zxid, stat=node.stat)
            case GetChildren():
                return Reply(xid, zxid, names=tuple(self._tree.children(path)))


def _tell(connection: _Connection, kind: WatchKind, path: str) -> None:
    connection.channel.send(Fired(kind, path))

"""What clients, members and the harness say to each other.

The fields are those of ZooKeeper's own requests and replies (``zookeeper.jute``), as far as a Kafka cluster uses them;
the encoding is MessagePack instead of Jute. Error codes are ZooKeeper's, 0 is none.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from nemesis.history.zookeeper_log import Transaction
from nemesis.reference.ports import ZnodeStat


class Code(IntEnum):
    """The errors of an operation that ZooKeeper refused."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    SESSION_MOVED = -118


class WatchKind(IntEnum):
    """What a watch says has happened."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILD = 4


class Message(msgspec.Struct, array_like=True, tag=True):
    """Base of everything that crosses a stream."""


# Parts of a write


class CreateOp(Message):
    path: str
    data: bytes
    ephemeral: bool = False
    sequential: bool = False


class SetDataOp(Message):
    path: str
    data: bytes
    version: int = -1


class DeleteOp(Message):
    path: str
    version: int = -1


class CheckOp(Message):
    path: str
    version: int


WriteOp = CreateOp | SetDataOp | DeleteOp | CheckOp

# Bodies of requests


class Get(Message):
    path: str
    watch: bool = False


class Exists(Message):
    path: str
    watch: bool = False


class GetChildren(Message):
    path: str
    watch: bool = False


class GetAll(Message):
    """Several reads of data in one request; sets no watch."""

    paths: tuple[str, ...]


class Write(Message):
    """One operation, or a multi (which may hold one, too)."""

    ops: tuple[WriteOp, ...]
    is_multi: bool = False


class OpenSession(Message):
    timeout_ms: int


class CloseSession(Message):
    pass


Read = Get | Exists | GetChildren
Submission = Write | OpenSession | CloseSession
"""What becomes a transaction."""

# A client to a member


class Connect(Message):
    """``session_id`` 0 asks for a new session; ``last_zxid`` is the newest that the client has seen."""

    session_id: int
    timeout_ms: int
    last_zxid: int = 0


class Ping(Message):
    pass


class Request(Message):
    xid: int
    body: Get | Exists | GetChildren | GetAll | Write | CloseSession


class AreYouThere(Message):
    """The harness asks whether the process answers, serving or not."""


FromClient = Connect | Ping | Request | AreYouThere

# A member to a client


class Connected(Message):
    """``session_id`` 0: the session that was asked for is over."""

    session_id: int
    timeout_ms: int


class Pong(Message):
    pass


class Fired(Message):
    kind: WatchKind
    path: str


class Outcome(Message):
    """Of one operation of a write. In a multi that failed, the operations around the failing one have no stat."""

    error: int = 0
    path: str | None = None
    stat: ZnodeStat | None = None


class Reply(Message):
    xid: int
    zxid: int
    error: int = 0
    data: bytes | None = None
    stat: ZnodeStat | None = None
    names: tuple[str, ...] = ()
    znodes: tuple[tuple[bytes, ZnodeStat] | None, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


class IAmHere(Message):
    pass


FromMember = Connected | Pong | Fired | Reply | IAmHere

# Between members: election


class Canvass(Message):
    """Would you have me as leader? Binds nobody."""

    position: int


class Opinion(Message):
    is_yes: bool
    accepted_epoch: int


class NewEpoch(Message):
    """Asks for the promise to follow no older epoch. ``is_elected``: a majority has given it already."""

    epoch: int
    position: int
    is_elected: bool = False


class Promise(Message):
    """``epoch_ends`` is the last zxid of each epoch in the log."""

    is_given: bool
    accepted_epoch: int
    epoch_ends: dict[int, int]


# Between members: a leader and its follower


class Sync(Message):
    """Cut the log after ``keep_to``, append the entries, and follow."""

    epoch: int
    keep_to: int
    entries: tuple[Transaction, ...]


class Proposal(Message):
    """``origin`` and ``number`` say whose request it was: a member, and the request's number there."""

    transaction: Transaction
    origin: int
    number: int


class Ack(Message):
    """The follower's log reaches to here."""

    position: int


class Commit(Message):
    position: int


class Heartbeat(Message):
    pass


class Alive(Message):
    """``touched`` are the sessions that were heard of since the last one."""

    touched: tuple[int, ...]


class Forward(Message):
    """A follower hands a client's write to its leader."""

    number: int
    session: int
    cxid: int
    body: Write | OpenSession | CloseSession


class Revalidate(Message):
    """A client has come with a session: is it alive? If so, it is now this member's."""

    number: int
    session: int


class Revalidated(Message):
    number: int
    is_alive: bool


FromPeer = (
    Canvass
    | Opinion
    | NewEpoch
    | Promise
    | Sync
    | Proposal
    | Ack
    | Commit
    | Heartbeat
    | Alive
    | Forward
    | Revalidate
    | Revalidated
)

"""Ending somebody else's ZooKeeper session, without any help from its owner.

ZooKeeper derives a session's password from its id alone: 16 bytes of ``java.util.Random`` seeded
with ``id XOR 0xB3415C00``. Whoever knows the id (the ``ephemeralOwner`` of ``/controller`` or
``/brokers/ids/N``) can attach to the session and close it. The server then drops the owner's
connection, deletes the ephemerals, and answers the owner's reconnection with "expired". Source:
``SessionTrackerImpl`` and ``PrepRequestProcessor`` of ZooKeeper 3.4 to 3.9.

**What a close may leave behind.** The owner reconnects within milliseconds. If it comes back to the server to which we
have just sent the close, before the leader has seen that, its session is found alive and it takes our place. When the
close takes effect, that server ends the connection which the request came from (``FinalRequestProcessor`` looks for
another one of the session only if that one is unknown), and the owner's stays: reads and pings are answered, writes are
refused as expired, and no client takes that for the end of its session. A follower never looks again
(``LearnerSessionTracker.touchSession`` knows no dead sessions); a leader or a standalone server ignores the next ping,
which the owner notices after two thirds of its time-out. So a server that may have carried out our close is asked
again until it says that there is no such session: whoever attaches to a session ends its former connection there.

Between two attempts there is a pause, for a server mixes up two connections that attach to a session at the same time:
of the followers' pending revalidations and of the connections by session only the last one is kept.

Limit: in ZooKeeper's transaction log this looks like a close by the client, not like an expiry by
the server; the history attributes it to the nemesis.
"""

from __future__ import annotations

import socket
import struct
import time
from enum import Enum, auto
from typing import BinaryIO

PASSWORD_BYTES = 16
_SUPER_SECRET = 0xB3415C00
_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK_48 = (1 << 48) - 1

ATTACH_TIMEOUT_S = 3.0
ATTEMPTS = 20
ATTEMPTS_AFTERWARDS = 5
PAUSE_S = 0.05
_CLOSE_SESSION = -11
_CONNECT_RESPONSE = struct.Struct(">iiq")
"""How a ConnectResponse begins: protocol version, time-out in ms, session id (0: there is no such session)."""


class JavaRandom:
    """``java.util.Random``: a linear congruential generator of 48 bits."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK_48

    def next_int(self) -> int:
        """Return the next signed 32-bit integer."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK_48
        unsigned = self._state >> 16
        return unsigned - (1 << 32) if unsigned >= 1 << 31 else unsigned

    def next_bytes(self, count: int) -> bytes:
        """Return ``count`` bytes; each integer gives four, the lowest first."""
        words = [struct.pack("<i", self.next_int()) for _ in range(-(-count // 4))]
        return b"".join(words)[:count]


def session_password(session_id: int) -> bytes:
    """Return the 16 bytes that ZooKeeper gave the session's owner. The id may be signed or unsigned."""
    return JavaRandom(session_id ^ _SUPER_SECRET).next_bytes(PASSWORD_BYTES)


class _Answer(Enum):
    """What became of one attempt to attach to a session and close it."""

    CLOSED = auto()
    OVER = auto()
    """There is no such session."""
    BROKEN_OFF = auto()
    """The owner took its session back, or the server died: it may be closed."""
    SILENT = auto()
    """The server stands still. When it goes on it finds out what has become of the session."""
    ABSENT = auto()
    """Nobody was there to be asked."""


def end_session(hosts: str, session_id: int) -> bool:
    """Attach to the session and close it; blocks up to a few seconds, so call it in a thread.

    ``hosts`` is ZooKeeper's connect string, ``session_id`` signed as ``ephemeralOwner`` is. Returns whether we ended
    the session: a server has closed it for us, or says that it is over after an attempt of ours that broke off and may
    have done it; and no server through which that may have happened keeps a connection of its owner. False when it
    was over before the first attempt, when no server answered, or when the owner took it back each time.
    """
    request = _connect_request(session_id) + _close_request()
    is_perhaps_ours = False
    closers: dict[str, None] = {}
    for server in hosts.split(",") * ATTEMPTS:
        answer = _attach_and_close(server, request)
        if answer is _Answer.OVER:
            break
        if answer is _Answer.ABSENT:
            continue
        is_perhaps_ours = True
        if answer in (_Answer.CLOSED, _Answer.BROKEN_OFF):
            closers[server] = None
        if answer is _Answer.CLOSED:
            break
        time.sleep(PAUSE_S)
    else:
        return False
    return is_perhaps_ours and all(_has_let_go(server, request) for server in closers)


def _has_let_go(server: str, request: bytes) -> bool:
    """Ask until the server, too, says that the session is over; return whether it does, or is gone itself."""
    for _ in range(ATTEMPTS_AFTERWARDS):
        time.sleep(PAUSE_S)
        if _attach_and_close(server, request) in (_Answer.OVER, _Answer.ABSENT):
            return True
    return False


def _connect_request(session_id: int) -> bytes:
    """ConnectRequest: protocol version, last zxid seen, time-out in ms, session, password, read-only."""
    password = session_password(session_id)
    body = struct.pack(
        f">iqiqi{PASSWORD_BYTES}s?",
        0,
        0,
        round(ATTACH_TIMEOUT_S * 1000),
        session_id,
        PASSWORD_BYTES,
        password,
        False,
    )
    return struct.pack(">i", len(body)) + body


def _close_request() -> bytes:
    """RequestHeader: xid, type closeSession."""
    return struct.pack(">iii", 8, 1, _CLOSE_SESSION)


def _attach_and_close(server: str, request: bytes) -> _Answer:
    """Send both requests as one write: the owner reconnects within milliseconds and takes its session back."""
    host, _, port = server.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), timeout=ATTACH_TIMEOUT_S)
    except OSError:
        return _Answer.ABSENT
    with connection:
        try:
            connection.sendall(request)
            with connection.makefile("rb") as replies:
                return _read_answer(replies)
        except TimeoutError:
            return _Answer.SILENT
        except (OSError, EOFError):
            return _Answer.BROKEN_OFF


def _read_answer(replies: BinaryIO) -> _Answer:
    """Read the reply to the first request, and to the second if there is such a session."""
    attached = _read_frame(replies, least=_CONNECT_RESPONSE.size)
    session: int = _CONNECT_RESPONSE.unpack_from(attached)[2]
    if not session:
        return _Answer.OVER
    _read_frame(replies)
    return _Answer.CLOSED


def _read_frame(replies: BinaryIO, *, least: int = 0) -> bytes:
    head = replies.read(4)
    if len(head) < 4:
        raise EOFError("ZooKeeper closed the connection")
    (size,) = struct.unpack(">i", head)
    if size < least or len(frame := replies.read(size)) < size:
        raise EOFError("ZooKeeper closed the connection within a reply")
    return frame

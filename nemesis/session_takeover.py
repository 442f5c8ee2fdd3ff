"""Ending somebody else's ZooKeeper session, without any help from its owner.

ZooKeeper derives a session's password from its id alone: 16 bytes of ``java.util.Random`` seeded
with ``id XOR 0xB3415C00``. Whoever knows the id (the ``ephemeralOwner`` of ``/controller`` or
``/brokers/ids/N``) can attach to the session and close it. The server then drops the owner's
connection, deletes the ephemerals, and answers the owner's reconnection with "expired". Source:
``SessionTrackerImpl`` and ``PrepRequestProcessor`` of ZooKeeper 3.4 to 3.9.

Limit: in ZooKeeper's transaction log this looks like a close by the client, not like an expiry by
the server; the history attributes it to the nemesis.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import BinaryIO

PASSWORD_BYTES = 16
_SUPER_SECRET = 0xB3415C00
_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK_48 = (1 << 48) - 1

ATTACH_TIMEOUT_S = 3.0
ATTEMPTS = 20
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


def end_session(hosts: str, session_id: int) -> bool:
    """Attach to the session and close it; blocks up to a few seconds, so call it in a thread.

    ``hosts`` is ZooKeeper's connect string, ``session_id`` signed as ``ephemeralOwner`` is. Returns whether we ended
    the session: a server has closed it for us, or says that it is over after an attempt of ours that broke off and may
    have done it. False when it was over before the first attempt, when no server answered, or when the owner took it
    back each time.
    """
    request = _connect_request(session_id) + _close_request()
    may_be_closed = False
    for host_and_port in hosts.split(",") * ATTEMPTS:
        host, _, port = host_and_port.rpartition(":")
        with (
            suppress(
                OSError, EOFError
            ),  # the owner took its session back: our connection went away
            socket.create_connection((host, int(port)), timeout=ATTACH_TIMEOUT_S) as connection,
        ):
            before, may_be_closed = may_be_closed, True
            return _close(connection, request) or before
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


def _close(connection: socket.socket, request: bytes) -> bool:
    """Return True once the server has closed the session, False when there is none; raises OSError or EOFError.

    Both requests are one write: the owner reconnects within milliseconds and takes its session back.
    """
    connection.sendall(request)
    with connection.makefile("rb") as replies:
        session: int = _CONNECT_RESPONSE.unpack_from(
            _read_frame(replies, least=_CONNECT_RESPONSE.size)
        )[2]
        if session:
            _read_frame(replies)
        return session != 0


def _read_frame(replies: BinaryIO, *, least: int = 0) -> bytes:
    head = replies.read(4)
    if len(head) < 4:
        raise EOFError("ZooKeeper closed the connection")
    (size,) = struct.unpack(">i", head)
    if size < least or len(frame := replies.read(size)) < size:
        raise EOFError("ZooKeeper closed the connection within a reply")
    return frame

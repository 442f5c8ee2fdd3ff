"""Ending or disturbing somebody's ZooKeeper session from outside."""

from __future__ import annotations

from kazoo.client import KazooClient

from nemesis.runtimes.session_takeover import end_session


def expire(address: str, session_id: int) -> None:
    """Return when ZooKeeper has closed the session."""
    assert end_session(address, session_id), "the session is not over"


def drop_connection(address: str, session_id: int) -> None:
    """Break the connection of a session that lives on: ZooKeeper drops it for whoever tries a wrong password."""
    impostor = KazooClient(address, client_id=(session_id, b"\0" * 15 + b"\1"))
    impostor.start()
    assert impostor.client_id is not None
    assert impostor.client_id[0] != session_id, "the wrong password was right"
    impostor.stop()
    impostor.close()

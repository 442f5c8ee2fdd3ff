"""Whose session is taken from them hears of it, from every server of a real ensemble, however soon they come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.retry import KazooRetry

from nemesis.runtimes.session_takeover import end_session
from tests.history.zookeeper_server import four_letter_word, zookeeper_ensemble

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SESSIONS = 60
"""About one in ten owners comes back at the very moment at which its session is closed."""
SESSION_TIMEOUT_S = 4.0
HEARS_WITHIN_S = 10.0


@contextmanager
def eager_owner(server: str) -> Iterator[tuple[int, threading.Event]]:
    """A client of one server that reconnects at once: its session, and that it is told of the session's end."""
    eager = KazooRetry(max_tries=-1, delay=0.001, backoff=1, max_delay=0.001)
    client = KazooClient(hosts=server, timeout=SESSION_TIMEOUT_S, connection_retry=eager)
    has_heard = threading.Event()
    client.add_listener(lambda state: has_heard.set() if state is KazooState.LOST else None)
    client.start()
    try:
        yield client.client_id[0], has_heard
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("mode", ["follower", "leader"])
def test_an_owner_that_reconnects_at_once_learns_that_its_session_is_over(
    mode: str, tmp_path: Path
) -> None:
    with zookeeper_ensemble(tmp_path) as members:
        chosen = next(m for m in members if f"Mode: {mode}" in four_letter_word(m, "srvr"))
        hosts = ",".join([chosen, *(member for member in members if member != chosen)])
        for n in range(SESSIONS):
            with eager_owner(chosen) as (session, has_heard):
                assert end_session(hosts, session)
                assert has_heard.wait(HEARS_WITHIN_S), f"owner {n} still has session {session:#x}"

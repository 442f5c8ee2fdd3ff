"""The password of a ZooKeeper session, from its id."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from nemesis.runtimes.session_takeover import (
    ATTEMPTS_AFTERWARDS,
    JavaRandom,
    end_session,
    session_password,
)
from tests.history.zookeeper_server import zookeeper_server


def test_java_random_gives_javas_numbers() -> None:
    # `new java.util.Random(seed).nextInt()`, three times for 42.
    assert JavaRandom(0).next_int() == -1155484576
    forty_two = JavaRandom(42)
    assert [forty_two.next_int() for _ in range(3)] == [-1170105035, 234785527, -1360544799]


def test_bytes_come_lowest_first_four_to_an_integer() -> None:
    whole = JavaRandom(7).next_bytes(8)
    again = JavaRandom(7)
    assert int.from_bytes(whole[:4], "little", signed=True) == again.next_int()
    assert int.from_bytes(whole[4:], "little", signed=True) == again.next_int()


def test_signed_and_unsigned_ids_are_the_same_session() -> None:
    session = -0x6F00_1234_5678_9ABC
    assert session_password(session) == session_password(session + 2**64)
    assert len(session_password(session)) == 16


def test_a_session_ends_although_its_owner_reconnects_at_once(tmp_path: Path) -> None:
    """The owner takes its session back within milliseconds: attaching and closing must be one write."""
    with zookeeper_server(tmp_path) as address:
        watcher = KazooClient(hosts=address)
        watcher.start()
        eager = KazooRetry(max_tries=-1, delay=0.001, backoff=1, max_delay=0.001)
        try:
            for _ in range(10):
                owner = KazooClient(hosts=address, timeout=10, connection_retry=eager)
                owner.start()
                owner.create("/owned", ephemeral=True)
                session = watcher.exists("/owned").ephemeralOwner
                assert end_session(address, session)
                assert watcher.exists("/owned") is None
                # Before it is gone it may break off the next attempt, too, which then can have been the one.
                owner.stop()
                owner.close()
                assert not end_session(address, session), "it was over already"
        finally:
            watcher.stop()
            watcher.close()


def test_a_server_that_does_not_answer_has_said_nothing() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert not end_session(f"127.0.0.1:{nobody.getsockname()[1]}", 1)


CLOSED = struct.pack(">iiiqi", 16, 0, 4000, 7, 0)  # attached to session 7, then an empty reply
NO_SESSION = struct.pack(">iiiq", 16, 0, 0, 0)
BROKEN_OFF = b""
TORN = struct.pack(">iii", 16, 0, 4000)
TOO_SHORT = struct.pack(">ii", 4, 0)


@contextmanager
def replying(*replies: bytes) -> Iterator[str]:
    """A server that takes exactly one connection per reply, writes it and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def serve() -> None:
            for reply in replies:
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(reply)

        with ThreadPoolExecutor(1) as thread:
            served = thread.submit(serve)
            yield f"127.0.0.1:{server.getsockname()[1]}"
            served.result()


@pytest.mark.parametrize(
    ("replies", "is_ended_by_us"),
    [
        ([CLOSED, NO_SESSION], True),
        ([NO_SESSION], False),
        ([BROKEN_OFF, NO_SESSION, NO_SESSION], True),
        ([TORN, NO_SESSION, NO_SESSION], True),
        ([TOO_SHORT, CLOSED, NO_SESSION], True),
    ],
)
def test_what_was_over_before_was_not_ended_by_us(
    replies: list[bytes], is_ended_by_us: bool
) -> None:
    with replying(*replies) as address:
        assert end_session(address, 7) is is_ended_by_us


def test_a_server_is_asked_until_it_has_let_the_owner_go() -> None:
    with replying(CLOSED, BROKEN_OFF, CLOSED, NO_SESSION) as address:
        assert end_session(address, 7)


def test_a_server_that_never_lets_the_owner_go_is_not_believed() -> None:
    with replying(CLOSED, *[BROKEN_OFF] * ATTEMPTS_AFTERWARDS) as address:
        assert not end_session(address, 7)


def test_only_servers_that_may_have_closed_the_session_are_asked_again() -> None:
    with (
        replying(BROKEN_OFF, NO_SESSION) as first,
        replying(CLOSED, NO_SESSION) as second,
        replying() as third,
    ):
        assert end_session(",".join([first, second, third]), 7)


def test_a_server_that_dies_keeps_no_connection() -> None:
    with (
        replying(NO_SESSION) as incarnations,
        socket.create_server(("127.0.0.1", 0)) as dying,
        ThreadPoolExecutor(1) as thread,
    ):

        def die() -> None:
            connection, _ = dying.accept()
            dying.close()
            connection.close()

        thread.submit(die)
        assert end_session(f"127.0.0.1:{dying.getsockname()[1]},{incarnations}", 7)

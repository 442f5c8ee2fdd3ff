"""The preloaded library: connections of a program that binds nothing leave from the address of its node."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nemesis.support.errors import MissingRequirement
from nemesis.support.source_address import environment, source_address_library

SOURCE = "127.3.2.1"
CONNECT = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family) as client:
    if len(sys.argv) > 3:
        client.bind((sys.argv[3], 0))
    client.connect((sys.argv[1], int(sys.argv[2])))
"""


@pytest.fixture
def library() -> Path:
    try:
        return source_address_library()
    except MissingRequirement as error:
        pytest.skip(str(error))


def caller(library: Path, host: str, *own: str) -> str:
    """Return the address from which a program connects to ``host``."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [host, str(server.getsockname()[1]), *own]
        command = [sys.executable, "-S", "-E", "-c", CONNECT, *words]
        subprocess.run(command, env=environment(library, SOURCE), timeout=20, check=True)
        connection, peer = server.accept()
        connection.close()
        return str(peer[0])


def test_a_connection_leaves_from_the_nodes_address(library: Path) -> None:
    assert caller(library, "127.0.0.1") == SOURCE


def test_an_address_that_is_written_as_ipv6_is_bound_too(library: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    assert caller(library, "::ffff:127.0.0.1") == SOURCE


@pytest.mark.parametrize("prefix", ["", "::ffff:"])
def test_connections_to_other_hosts_leave_as_the_machine_chooses(
    library: Path, prefix: str
) -> None:
    """192.0.2.1 (RFC 5737) is the address of no machine. A socket bound to 127.0.0.0/8 is refused EINVAL for it."""
    family = "AF_INET6" if prefix else "AF_INET"
    code = f"""
import socket
client = socket.socket(socket.{family})
client.setblocking(False)
client.connect_ex(("{prefix}192.0.2.1", 9))
print(client.getsockname()[0])
"""
    command = [sys.executable, "-S", "-E", "-c", code]
    ran = subprocess.run(
        command, env=environment(library, SOURCE), timeout=20, check=True, capture_output=True
    )
    assert SOURCE not in ran.stdout.decode()


def test_a_socket_that_is_bound_already_is_left_alone(library: Path) -> None:
    assert caller(library, "127.0.0.1", "127.9.9.9") == "127.9.9.9"


def test_it_is_appended_to_what_is_preloaded_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/lib/a.so")
    assert environment(Path("/lib/b.so"), SOURCE) == os.environ | {
        "LD_PRELOAD": "/lib/a.so /lib/b.so",
        "NEMESIS_SOURCE_ADDRESS": SOURCE,
    }

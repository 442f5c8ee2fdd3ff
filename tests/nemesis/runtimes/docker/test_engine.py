"""No engine, no permission, too old, elsewhere: one sentence each. The engine is a socket that answers as one would."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from nemesis.runtimes.docker import engine
from nemesis.support.errors import MissingRequirement

FIT = {"Version": "27.1.0", "ApiVersion": "1.46", "MinAPIVersion": "1.24"}
LINUX = {
    "OSType": "linux",
    "OperatingSystem": "Debian GNU/Linux 12",
    "DockerRootDir": tempfile.gettempdir(),
}


@contextmanager
def answering(path: Path, version: dict[str, str], info: dict[str, Any]) -> Iterator[None]:
    """Serve the two questions that ``connect`` asks, over a real socket."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = version if self.path.endswith("/version") else info
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None: ...

        def address_string(self) -> str:
            return "harness"

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def socket_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    return path


def test_an_engine_that_answers_is_used(socket_path: Path) -> None:
    with answering(socket_path, FIT, LINUX):
        client = engine.connect()
        assert client.version()["Version"] == "27.1.0"
        client.close()


def test_without_a_socket_the_cure_is_to_start_or_install_it(
    socket_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingRequirement, match="no Docker engine was found: install it"):
        engine.connect()
    (tmp_path / "dockerd").write_text("#!/bin/sh\n")
    (tmp_path / "dockerd").chmod(0o755)
    with pytest.raises(MissingRequirement, match=r"no Docker engine runs .*: start it"):
        engine.connect()


def test_a_socket_that_nobody_serves_is_named(socket_path: Path) -> None:
    with answering(socket_path, FIT, LINUX):
        pass
    with pytest.raises(MissingRequirement, match=f"no Docker engine answers at {socket_path}"):
        engine.connect()


def test_no_permission_is_told_from_no_engine(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(probe: socket.socket, address: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(MissingRequirement) as caught:
        engine.connect()
    assert str(caught.value) == (
        f"you may not use the Docker engine at {socket_path}: run nemesis with sudo"
    )


def test_an_old_engine_is_refused(socket_path: Path) -> None:
    old = {"Version": "19.03.5", "ApiVersion": "1.40", "MinAPIVersion": "1.12"}
    with (
        answering(socket_path, old, LINUX),
        pytest.raises(MissingRequirement, match=r"Docker 19.03.5 with API 1.40 is too old"),
    ):
        engine.connect()


def test_an_engine_in_another_system_is_refused(socket_path: Path) -> None:
    windows = {"OSType": "windows", "OperatingSystem": "Windows Server"}
    with (
        answering(socket_path, FIT, windows),
        pytest.raises(MissingRequirement, match="the engine runs Windows Server"),
    ):
        engine.connect()


@pytest.mark.parametrize(
    ("reported", "sentence"),
    [
        ({"OperatingSystem": "Docker Desktop"}, "Docker Desktop runs its engine in a virtual"),
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}, "without root's"),
    ],
)
def test_an_engine_whose_networks_are_out_of_reach_is_refused(
    socket_path: Path, reported: dict[str, Any], sentence: str
) -> None:
    with (
        answering(socket_path, FIT, LINUX | reported),
        pytest.raises(MissingRequirement, match=sentence),
    ):
        engine.connect()


def test_a_remote_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere.invalid:2375")
    with pytest.raises(MissingRequirement, match=r"DOCKER_HOST is tcp://elsewhere.invalid:2375"):
        engine.connect()


def test_who_is_not_root_is_told_to_be(socket_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        answering(socket_path, FIT, LINUX),
        pytest.raises(MissingRequirement, match="needs root"),
    ):
        engine.require_docker()


def test_a_tool_that_is_missing_is_named_with_its_package(
    socket_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        answering(socket_path, FIT, LINUX),
        pytest.raises(MissingRequirement, match=r"needs `nsenter`: .* install util-linux`"),
    ):
        engine.require_docker()
    for tool in engine.HOST_TOOLS:
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    with answering(socket_path.with_name("other.sock"), FIT, LINUX):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_path.with_name('other.sock')}")
        assert engine.require_docker() == "Docker 27.1.0, API 1.46"


def test_an_engine_that_is_full_is_named_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.require_space(tmp_path)
    monkeypatch.setattr(engine, "MINIMUM_FREE_BYTES", 2**70)
    with pytest.raises(MissingRequirement, match=rf"has [\d,]+ MiB left in {tmp_path}: free "):
        engine.require_space(tmp_path)


def test_an_engine_whose_files_are_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match=f"in {tmp_path}/absent, which is not on this"):
        engine.require_space(tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "numbers"), [("1.41", (1, 41)), ("1.9", (1, 9)), ("", ()), ("new", ())]
)
def test_api_versions_compare_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert engine.api_version(text) == numbers

"""The network namespace of a container: to run a command in it, and to open a socket in it. Standard library only.

A namespace is held by an open file, so that it stays the very same one even when the container dies and its process
id goes to somebody else. The machine's own namespace is refused: no rule of ours belongs there.

What has been opened in a namespace stays in it. So a socket is opened by a thread that goes there alone; probes from a
container's own address are such sockets.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT, ESRCH
from pathlib import Path

COMMAND_TIMEOUT_S = 20.0
OWN_NAMESPACE = "/proc/thread-self/ns/net"
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceError(Exception):
    """The namespace is gone or is not a container's, or a command in it failed."""


class NamespaceGone(NamespaceError):
    """The process is no more, or its devices went with it."""


class Namespace:
    """The network namespace in which a process lives; ``close`` lets it go."""

    def __init__(self, pid: int) -> None:
        """Raises ``NamespaceGone``, or ``NamespaceError`` when the process shares this machine's own namespace."""
        try:
            self._fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            kind = NamespaceGone if error.errno in (ENOENT, ESRCH) else NamespaceError
            raise kind(
                f"the network namespace of process {pid} cannot be opened: {error.strerror}"
            ) from None
        if os.fstat(self._fd).st_ino == Path(OWN_NAMESPACE).stat().st_ino:
            os.close(self._fd)
            raise NamespaceError(f"process {pid} has no network namespace of its own")
        self.pid = pid
        """The process that it was found by."""

    @property
    def path(self) -> str:
        """Where other processes of this user find it, as long as it is held."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        """Let it go. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def run(self, *command: str, stdin: str = "") -> str:
        """Return what this machine's command prints when it runs there; raises ``NamespaceError`` when it fails."""
        process = await asyncio.create_subprocess_exec(
            "nsenter",
            f"--net={self.path}",
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                out, err = await process.communicate(stdin.encode())
        except TimeoutError:
            raise NamespaceError(f"{_readable(command)} did not end") from None
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            said = " ".join(err.decode(errors="replace").split()) or "it said nothing"
            raise NamespaceError(f"{_readable(command)} failed: {said}")
        return out.decode()

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a new socket of that namespace; raises OSError."""
        opened: list[socket.socket | OSError] = []

        def open_there() -> None:
            try:
                with entered(self.path):
                    opened.append(socket.socket(family, kind, protocol))
            except OSError as error:
                opened.append(error)

        thread = threading.Thread(target=open_there, name="socket-in-namespace")
        thread.start()
        thread.join()
        if isinstance(opened[0], OSError):
            raise opened[0]
        return opened[0]


@contextmanager
def entered(path: str) -> Iterator[None]:
    """This thread is in the network namespace at ``path`` meanwhile; raises OSError."""
    own = os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _set_namespace(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _set_namespace(own)
    finally:
        os.close(own)


def _set_namespace(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _readable(command: Sequence[str]) -> str:
    return " ".join(command)

"""The options of real sockets, for ``nemesis.reference.ports.SocketBuffers``."""

from __future__ import annotations

import socket as system
from typing import Any


class RealSocketBuffers:
    """The kernel's; it may round what it is told."""

    def set(self, socket: Any, *, send_bytes: int = -1, receive_bytes: int = -1) -> None:
        if send_bytes >= 0:
            socket.setsockopt(system.SOL_SOCKET, system.SO_SNDBUF, send_bytes)
        if receive_bytes >= 0:
            socket.setsockopt(system.SOL_SOCKET, system.SO_RCVBUF, receive_bytes)

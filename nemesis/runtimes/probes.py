"""A fresh request over a link: does it cross, and does its answer come back?

A broker is asked for its API versions (version 0, which every Kafka broker answers, also before it knows anything
else), a ZooKeeper server for ``srvr``. Both need the node's own work, so a paused node does not answer although
its kernel accepts the connection.

Who asks is the address that the probe binds, or the network namespace in which its socket was made.
"""

from __future__ import annotations

import asyncio
import socket

from nemesis.interfaces.links import Address

API_VERSIONS_KEY = 18
CORRELATION_ID = 0x6E656D
CLIENT_ID = b"nemesis-probe"

API_VERSIONS_REQUEST = b"".join(
    [
        API_VERSIONS_KEY.to_bytes(2),
        (0).to_bytes(2),
        CORRELATION_ID.to_bytes(4),
        len(CLIENT_ID).to_bytes(2),
        CLIENT_ID,
    ]
)
ZOOKEEPER_REQUEST = b"srvr"
ZOOKEEPER_ANSWER = b"Zookeeper version"


async def probe_broker(
    address: Address,
    *,
    timeout_s: float,
    source_host: str | None = None,
    caller: socket.socket | None = None,
) -> bool:
    """Whether the broker's answer to ApiVersions came in time.

    ``source_host`` is bound, or ``caller``, a socket not yet connected, is used; it is closed in any case.
    """
    frame = len(API_VERSIONS_REQUEST).to_bytes(4) + API_VERSIONS_REQUEST
    answer = await _ask(address, frame, 8, timeout_s, source_host, caller)
    return answer[4:] == CORRELATION_ID.to_bytes(4)


async def probe_zookeeper(
    address: Address,
    *,
    timeout_s: float,
    source_host: str | None = None,
    caller: socket.socket | None = None,
) -> bool:
    """Whether a serving ZooKeeper's answer to ``srvr`` came in time; the rest as for ``probe_broker``."""
    size = len(ZOOKEEPER_ANSWER)
    answer = await _ask(address, ZOOKEEPER_REQUEST, size, timeout_s, source_host, caller)
    return answer == ZOOKEEPER_ANSWER


async def _ask(
    address: Address,
    request: bytes,
    size: int,
    timeout_s: float,
    source_host: str | None,
    caller: socket.socket | None,
) -> bytes:
    """Return the first ``size`` bytes of the answer; nothing when they did not all come in time."""
    called = caller or socket.socket()
    writer: asyncio.StreamWriter | None = None
    try:
        called.setblocking(False)
        if source_host is not None:
            called.bind((source_host, 0))
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(called, (address.host, address.port))
            reader, writer = await asyncio.open_connection(sock=called)
            writer.write(request)
            return await reader.readexactly(size)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return b""
    finally:
        if writer is not None:
            # Not a polite close: what a cut link holds of this probe is of no use to anybody.
            writer.transport.abort()
        else:
            called.close()

"""A fresh request over a link: does it cross, and does its answer come back?

A broker is asked for its API versions (version 0, which every Kafka broker answers, also before it knows anything
else), a ZooKeeper server for ``srvr``. Both need the node's own work, so a paused node does not answer although
its kernel accepts the connection.
"""

from __future__ import annotations

import asyncio

from nemesis.runtimes.base import Address

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


async def probe_broker(address: Address, *, source_host: str | None, timeout_s: float) -> bool:
    """Whether the broker's answer to ApiVersions came in time."""
    frame = len(API_VERSIONS_REQUEST).to_bytes(4) + API_VERSIONS_REQUEST
    answer = await _ask(address, frame, 8, source_host=source_host, timeout_s=timeout_s)
    return answer[4:] == CORRELATION_ID.to_bytes(4)


async def probe_zookeeper(address: Address, *, source_host: str | None, timeout_s: float) -> bool:
    """Whether a serving ZooKeeper's answer to ``srvr`` came in time."""
    size = len(ZOOKEEPER_ANSWER)
    answer = await _ask(
        address, ZOOKEEPER_REQUEST, size, source_host=source_host, timeout_s=timeout_s
    )
    return answer == ZOOKEEPER_ANSWER


async def _ask(
    address: Address, request: bytes, size: int, *, source_host: str | None, timeout_s: float
) -> bytes:
    """Return the first ``size`` bytes of the answer; nothing when they did not all come in time."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(
                address.host,
                address.port,
                local_addr=(source_host, 0) if source_host is not None else None,
            )
            writer.write(request)
            return await reader.readexactly(size)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return b""
    finally:
        if writer is not None:
            # Not a polite close: what a cut link holds of this probe is of no use to anybody.
            writer.transport.abort()

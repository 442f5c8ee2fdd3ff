"""The proxy process, ``python -m nemesis.runtimes.local``: commands on stdin, replies on stdout.

The end of stdin ends it, so the proxy never outlives its harness.
"""

from __future__ import annotations

import asyncio
import resource
import sys

import msgspec

from nemesis.runtimes.local.proxy import Command, Proxy, Reply

LINE_LIMIT_BYTES = 2**20


async def serve_control() -> None:
    """Obey stdin until it ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    proxy = Proxy()
    while line := await reader.readline():
        try:
            reply = await proxy.execute(msgspec.json.decode(line, type=Command))
        except msgspec.MsgspecError as error:
            reply = Reply(error=f"bad command: {error}")
        sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
        sys.stdout.buffer.flush()


def allow_many_sockets() -> None:
    """Raise the soft limit of open files to the hard one: each connection of the cluster takes two here."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    allow_many_sockets()
    asyncio.run(serve_control())

"""The least that a broker process is: it listens where it is told and answers each request with its correlation id.

The runtime's own tests use it as target, so that they need no knowledge of the reference.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            request = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            writer.write((4).to_bytes(4) + request[4:8])
    except (asyncio.IncompleteReadError, OSError):
        writer.close()


async def listen(host: str, port: int) -> None:
    server = await asyncio.start_server(serve, host, port)
    await server.serve_forever()


if __name__ == "__main__":
    properties = json.loads(Path(sys.argv[1]).read_text())
    trace = Path(properties["trace.file"])
    with trace.with_suffix(".starts").open("a") as starts:
        starts.write(".")
        start = starts.tell()
    if properties.get("exit") or start in properties.get("exit_at_starts", []):
        raise SystemExit("told to exit")
    trace.touch()
    asyncio.run(listen(properties["host"], properties["port"]))

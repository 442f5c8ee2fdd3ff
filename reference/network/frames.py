"""Reading one frame from a stream."""

from __future__ import annotations

import asyncio

from reference.protocol.codec import SIZE_BYTES, decode_size


async def read_frame(reader: asyncio.StreamReader, *, max_bytes: int) -> bytes:
    """The next frame, without its size.

    Raises ``EOFError`` (``IncompleteReadError``) when the stream ends first and ``ProtocolError`` when the frame
    claims more than ``max_bytes``: nothing is read or reserved for such a frame.
    """
    size = decode_size(await reader.readexactly(SIZE_BYTES), max_bytes=max_bytes)
    return await reader.readexactly(size)

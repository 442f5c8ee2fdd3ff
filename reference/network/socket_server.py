"""Accepts connections and moves frames between them and the request channel.

One task per connection reads a frame, decodes it, sends it through the ``RequestChannel`` and writes
the answer before it reads the next one: a connection has one request in flight (Kafka mutes the
channel), which keeps a client's requests in order. Whatever is wrong with a frame closes that
connection and touches nothing else. An ApiVersions request of a version that is not offered is answered
in version 0 with UNSUPPORTED_VERSION and the offered ranges (KIP-511).

Limit: a client that disconnects is noticed when its pending answer is written, so at the latest after
the time its request allowed the broker to wait.
"""

from __future__ import annotations

import asyncio
import logging

from kio.schema.api_versions.v0.response import ApiVersion
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from reference.network.frames import read_frame
from reference.network.request_channel import CloseConnectionError, RequestChannel
from reference.protocol import codec as wire_format
from reference.protocol.codec import Codec
from reference.protocol.errors import ProtocolError, UnsupportedVersionError
from reference.protocol.versions import OFFERED, ApiKey, is_offered

logger = logging.getLogger(__name__)


class SocketServer:
    """The listener and its connections."""

    def __init__(
        self, channel: RequestChannel, *, max_request_bytes: int, codec: Codec = wire_format
    ) -> None:
        self._channel = channel
        self._codec = codec
        self._max_request_bytes = max_request_bytes
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def startup(self, host: str, port: int) -> int:
        """Listen; returns the port (for port 0 the one that was given). Raises OSError when it is taken."""
        self._server = await asyncio.start_server(self._accept, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def shutdown(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer), name="connection")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                frame = await read_frame(reader, max_bytes=self._max_request_bytes)
                answer = await self._answer(frame)
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (ProtocolError, CloseConnectionError) as error:
            logger.warning("closing connection of %s: %s", writer.get_extra_info("peername"), error)
        except (OSError, EOFError):
            pass  # The peer has gone.
        except Exception:
            logger.exception("connection of %s", writer.get_extra_info("peername"))
        finally:
            writer.close()

    async def _answer(self, frame: bytes) -> bytes | None:
        try:
            request = self._codec.decode_request(frame, is_offered=is_offered)
        except UnsupportedVersionError as error:
            if error.api_key != ApiKey.API_VERSIONS:
                raise
            return self._codec.encode_response(
                unsupported_api_versions(), correlation_id=error.correlation_id
            )
        response = await self._channel.send(request)
        if response is None:
            return None
        return self._codec.encode_response(response, correlation_id=request.correlation_id)


def unsupported_api_versions() -> ApiVersionsResponseV0:
    """The answer that any client can read, whatever version it asked in."""
    return ApiVersionsResponseV0(
        error_code=ErrorCode.unsupported_version,
        api_keys=tuple(
            ApiVersion(
                api_key=i16(key),
                min_version=i16(versions.lowest),
                max_version=i16(versions.highest),
            )
            for key, versions in OFFERED.items()
        ),
    )

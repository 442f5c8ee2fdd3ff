"""Accepts connections and moves frames between them and the request channel.

A connection decodes a frame, puts the request into the ``RequestChannel`` and writes the answer before it reads the
next one: it has one request in flight (Kafka mutes the channel), which keeps a client's requests in order. Nor does it
read on while the client does not take its answers. Whatever is wrong with a frame closes that connection and
touches nothing else. An ApiVersions request of a version that is not offered is answered in version 0 with
UNSUPPORTED_VERSION and the offered ranges (KIP-511).

As in Kafka there is no thread per connection: it is a protocol, which the event loop calls when bytes have come and
the handlers when an answer is there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from kio.schema.api_versions.v0.response import ApiVersion
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from reference.network.frames import FrameProtocol
from reference.network.request_channel import RequestChannel
from reference.protocol import codec as wire_format
from reference.protocol.codec import Codec, Request
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
        self._connections: dict[ServerConnection, None] = {}

    async def startup(self, host: str, port: int) -> int:
        """Listen; returns the port (for port 0 the one that was given). Raises OSError when it is taken."""
        self._server = await asyncio.get_running_loop().create_server(self._accept, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def shutdown(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)  # they close their sockets one iteration later

    def _accept(self) -> ServerConnection:
        return ServerConnection(
            self._channel,
            self._codec,
            max_request_bytes=self._max_request_bytes,
            connections=self._connections,
        )


class ServerConnection(FrameProtocol):
    """A client's connection, one request after the other. While it is open it is among ``connections``."""

    def __init__(
        self,
        channel: RequestChannel,
        codec: Codec,
        *,
        max_request_bytes: int,
        connections: dict[ServerConnection, None],
    ) -> None:
        super().__init__(max_bytes=max_request_bytes)
        self._channel = channel
        self._codec = codec
        self._connections = connections
        self._is_muted = False
        """A request is in flight, or the connection is closed."""
        self._is_full = False
        """The client has yet to take what was written for it."""

    def progressed(self) -> None:
        """Take the next request if the one before is answered."""
        try:
            while not self._is_muted and not self._is_full:
                frame = self.next_frame()
                if frame is None:
                    return
                self._receive(frame)
        except ProtocolError as error:
            self.refuse(str(error))
        except (OSError, EOFError):
            self.close()  # the peer has gone
        except Exception:
            logger.exception("connection of %s", self._peer())
            self.close()

    def answer(self, request: Request, response: Any) -> None:
        """Send a kio message (None: nothing), and go on to the next request."""
        if self.transport.is_closing():
            return
        try:
            if response is not None:
                self._write(response, request.correlation_id)
        except Exception:
            logger.exception("answer to %s", request)
            self.close()
        else:
            self._is_muted = False
            self.progressed()

    def refuse(self, reason: str) -> None:
        """Close the connection because of what was sent over it."""
        if not self.transport.is_closing():
            logger.warning("closing connection of %s: %s", self._peer(), reason)
            self.close()

    def close(self) -> None:
        """Write what is to be written, and nothing more."""
        self._is_muted = True
        self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections[self] = None

    def connection_lost(self, _exc: Exception | None) -> None:
        self._is_muted = True
        del self._connections[self]

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.progressed()

    def _receive(self, frame: bytes) -> None:
        try:
            request = self._codec.decode_request(frame, is_offered=is_offered)
        except UnsupportedVersionError as error:
            if error.api_key != ApiKey.API_VERSIONS:
                raise
            self._write(unsupported_api_versions(), error.correlation_id)
        else:
            self._is_muted = True
            self._channel.send_request(request, self)

    def _write(self, response: Any, correlation_id: int) -> None:
        self.transport.write(self._codec.encode_response(response, correlation_id=correlation_id))

    def _peer(self) -> Any:
        return self.transport.get_extra_info("peername")


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

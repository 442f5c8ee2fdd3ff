"""A broker's connection to another broker: one request in flight, made when needed, dropped on any failure.

The fetchers, the control channel and AlterPartition each own one. A connection that failed in any way is closed, never
reused: an answer that comes late would be taken for that of the next request. Whoever retries does so on a new one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from reference.network.errors import NetworkError, RequestTimedOutError
from reference.network.frames import read_frame
from reference.protocol import codec as wire_format
from reference.protocol.codec import Codec
from reference.protocol.errors import ProtocolError
from reference.protocol.schema import response_class


class BrokerConnection:
    """Sends requests to whatever address it is told; reconnects when the address changes."""

    def __init__(
        self,
        *,
        client_id: str,
        source_address: tuple[str, int] | None,
        max_response_bytes: int,
        codec: Codec = wire_format,
    ) -> None:
        self._client_id = client_id
        self._source_address = source_address
        self._max_response_bytes = max_response_bytes
        self._codec = codec
        self._lock = asyncio.Lock()
        self._address: tuple[str, int] | None = None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._correlation_id = 0
        self._written = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        """Send a kio request and return the kio response of the same version.

        Raises ``RequestTimedOutError`` after ``timeout_s`` seconds and ``NetworkError`` on any other failure; both
        leave the connection closed, as a cancellation does.
        """
        async with self._lock:
            self._written = False
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._exchange((host, port), request)
            except TimeoutError:
                self._drop()
                raise RequestTimedOutError(
                    f"no answer from {host}:{port} within {timeout_s} s",
                    definite=not self._written,
                ) from None
            except (OSError, EOFError, ProtocolError) as error:
                self._drop()
                raise NetworkError(
                    f"{host}:{port}: {error or type(error).__name__}", definite=not self._written
                ) from error
            except BaseException:
                self._drop()
                raise

    async def close(self) -> None:
        """Close the connection; it opens anew with the next request."""
        self._drop()

    async def _exchange(self, address: tuple[str, int], request: Any) -> Any:
        reader, writer = await self._connected(address)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = self._codec.encode_request(
            request, correlation_id=self._correlation_id, client_id=self._client_id
        )
        self._written = True
        writer.write(frame)
        await writer.drain()
        answer = await read_frame(reader, max_bytes=self._max_response_bytes)
        correlation_id, response = self._codec.decode_response(
            answer, response_class(type(request))
        )
        if correlation_id != self._correlation_id:
            raise ProtocolError(
                f"answer to request {correlation_id} instead of {self._correlation_id}"
            )
        return response

    async def _connected(
        self, address: tuple[str, int]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # A peer that closed an idle connection is noticed here, while nothing has been sent yet.
        if self._streams and (address != self._address or self._streams[0].at_eof()):
            self._drop()
        if self._streams is None:
            self._streams = await asyncio.open_connection(*address, local_addr=self._source_address)
            self._address = address
        return self._streams

    def _drop(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

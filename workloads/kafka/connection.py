"""One connection to one broker: frames written and read, one request in flight.

A connection that failed or timed out is closed and never used again, so that a late answer can never be taken for
the answer to another request.
"""

from __future__ import annotations

import asyncio
import struct
from functools import cache
from types import ModuleType
from typing import Any

from kio.index import load_payload_module
from kio.static.constants import EntityType

from workloads.kafka import codec as wire_format
from workloads.kafka.codec import Codec
from workloads.kafka.errors import ConnectionFailed, RequestTimedOut

_MAX_RESPONSE_BYTES = 64 * 1024 * 1024


@cache
def _response_class(api_key: int, version: int, name: str) -> Any:
    module: ModuleType = load_payload_module(api_key, version, EntityType.response)
    return getattr(module, name)


class KafkaConnection:
    """Sends one request at a time. Not usable after an error."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        source_host: str,
        codec: Codec = wire_format,
    ) -> None:
        self.address = (host, port)
        self._client_id = client_id
        self._source_host = source_host
        self._codec = codec
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._correlation_id = 0

    async def request(self, request: Any, *, timeout_s: float) -> Any:
        """Return the broker's response, of the request's own version.

        Raises ``ConnectionFailed`` (definite when nothing was sent) and ``RequestTimedOut``; either closes the
        connection.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(request)
        except TimeoutError:
            never_sent = self._writer is None
            self.close()
            if never_sent:
                raise ConnectionFailed("CONNECT_TIMED_OUT", definite=True) from None
            raise RequestTimedOut from None
        except (OSError, EOFError, ValueError) as error:
            self.close()
            name = type(error).__name__
            raise ConnectionFailed(f"DISCONNECTED ({name})", definite=False) from error
        except BaseException:
            self.close()
            raise

    async def _exchange(self, request: Any) -> Any:
        if self._writer is None:
            try:
                self._reader, self._writer = await asyncio.open_connection(
                    *self.address, local_addr=(self._source_host, 0)
                )
            except OSError as error:
                raise ConnectionFailed("CONNECTION_REFUSED", definite=True) from error
        assert self._reader is not None
        self._correlation_id += 1
        self._writer.write(
            self._codec.encode_request(
                request, correlation_id=self._correlation_id, client_id=self._client_id
            )
        )
        await self._writer.drain()
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        if not 0 <= size <= _MAX_RESPONSE_BYTES:
            raise ConnectionFailed("RESPONSE_TOO_LARGE", definite=False)
        frame = await self._reader.readexactly(size)
        response_class = _response_class(
            request.__api_key__,
            request.__version__,
            type(request).__name__.removesuffix("Request") + "Response",
        )
        correlation_id, response = self._codec.decode_response(frame, response_class)
        if correlation_id != self._correlation_id:
            raise ConnectionFailed("CORRELATION_ID_MISMATCH", definite=False)
        return response

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._reader = None

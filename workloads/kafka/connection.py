"""One connection to one broker: frames written and read through kio, one request in flight.

A connection that failed or timed out is closed and never used again, so that a late answer can never be taken for
the answer to another request.
"""

from __future__ import annotations

import asyncio
import io
import struct
from functools import cache
from types import ModuleType
from typing import Any

from kio.index import load_payload_module
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from workloads.kafka.errors import ConnectionFailed, RequestTimedOut

_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_API_VERSIONS_KEY = 18


@cache
def _response_type(api_key: int, version: int, name: str) -> Any:
    module: ModuleType = load_payload_module(api_key, version, EntityType.response)
    return getattr(module, name)


def _encode(request: Any, correlation_id: int, client_id: str) -> bytes:
    header_type = request.__header_schema__
    buffer = io.BytesIO()
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    entity_writer(header_type)(buffer, header)
    entity_writer(type(request))(buffer, request)
    body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def _decode(frame: bytes, correlation_id: int, request_type: Any) -> Any:
    response_type = _response_type(
        request_type.__api_key__,
        request_type.__version__,
        request_type.__name__.removesuffix("Request") + "Response",
    )
    header_type = (
        ResponseHeaderV0
        if request_type.__api_key__ == i16(_API_VERSIONS_KEY)
        else response_type.__header_schema__
    )
    header, size = entity_reader(header_type)(frame, 0)
    if header.correlation_id != correlation_id:
        raise ConnectionFailed("CORRELATION_ID_MISMATCH", definite=False)
    response, _ = entity_reader(response_type)(frame, size)
    return response


class KafkaConnection:
    """Sends one request at a time. Not usable after an error."""

    def __init__(self, host: str, port: int, *, client_id: str, source_host: str) -> None:
        self.address = (host, port)
        self._client_id = client_id
        self._source_host = source_host
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
        except (OSError, EOFError, SerialError, ValueError, KeyError) as error:
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
        self._writer.write(_encode(request, self._correlation_id, self._client_id))
        await self._writer.drain()
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        if not 0 <= size <= _MAX_RESPONSE_BYTES:
            raise ConnectionFailed("RESPONSE_TOO_LARGE", definite=False)
        frame = await self._reader.readexactly(size)
        return _decode(frame, self._correlation_id, type(request))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._reader = None

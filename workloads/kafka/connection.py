"""One connection to one broker: requests encoded, their answers decoded, one request in flight.

A connection that failed or timed out is closed and never used again, so that a late answer can never be taken for
the answer to another request.
"""

from __future__ import annotations

import asyncio
from functools import cache
from types import ModuleType
from typing import Any

from kio.index import load_payload_module
from kio.static.constants import EntityType

from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.errors import ConnectionFailed, RequestTimedOut
from nemesis.workloads.kafka.frames import Exchange, Traffic

_MAX_RESPONSE_BYTES = 64 * 1024 * 1024


@cache
def _response_class(api_key: int, version: int, request_name: str) -> Any:
    module: ModuleType = load_payload_module(api_key, version, EntityType.response)
    return getattr(module, request_name.removesuffix("Request") + "Response")


def _response_of(request: Any) -> Any:
    """Return the response of the request's version: kio's, unless the request names another one."""
    if (declared := getattr(request, "__response__", None)) is not None:
        return declared
    return _response_class(request.__api_key__, request.__version__, type(request).__name__)


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
        traffic: Traffic | None = None,
    ) -> None:
        """``traffic`` counts what the client process does on all its connections."""
        self.address = (host, port)
        self._client_id = client_id
        self._source_host = source_host
        self._codec = codec
        self._traffic = traffic or Traffic()
        self._stream: Exchange | None = None
        self._correlation_id = 0
        self._sent = 0.0

    async def request(self, request: Any, *, timeout_s: float, is_answered: bool = True) -> Any:
        """Return the broker's response, of the request's own version; None if the broker never answers such a request.

        Raises ``ConnectionFailed`` (definite when nothing was sent) and ``RequestTimedOut``; either closes the
        connection.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            return await self._exchange(request, deadline, is_answered=is_answered)
        except TimeoutError:
            never_sent = self._stream is None
            self.close()
            if never_sent:
                raise ConnectionFailed("CONNECT_TIMED_OUT", definite=True) from None
            raise RequestTimedOut(loop.time() - self._sent) from None
        except (OSError, EOFError, ValueError) as error:
            self.close()
            name = type(error).__name__
            raise ConnectionFailed(f"DISCONNECTED ({name})", definite=False) from error
        except BaseException:
            self.close()
            raise

    async def _exchange(self, request: Any, deadline: float, *, is_answered: bool) -> Any:
        if self._stream is None:
            async with asyncio.timeout_at(deadline):
                self._stream = await self._connect()
        self._correlation_id += 1
        frame = self._codec.encode_request(
            request, correlation_id=self._correlation_id, client_id=self._client_id
        )
        if not is_answered:
            self._stream.tell(frame)
            return None
        self._sent = asyncio.get_running_loop().time()
        answer = await self._stream.ask(frame, deadline=deadline)
        correlation_id, response = self._codec.decode_response(answer, _response_of(request))
        if correlation_id != self._correlation_id:
            raise ConnectionFailed("CORRELATION_ID_MISMATCH", definite=False)
        return response

    async def _connect(self) -> Exchange:
        try:
            _, stream = await asyncio.get_running_loop().create_connection(
                lambda: Exchange(max_answer_bytes=_MAX_RESPONSE_BYTES, traffic=self._traffic),
                *self.address,
                local_addr=(self._source_host, 0),
            )
        except OSError as error:
            raise ConnectionFailed("CONNECTION_REFUSED", definite=True) from error
        return stream

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

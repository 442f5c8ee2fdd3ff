"""A broker's connection to another broker: one request in flight, made when needed, dropped on any failure.

The fetchers, the control channel and AlterPartition each own one. A connection that failed in any way is closed, never
reused: an answer that comes late would be taken for that of the next request. Whoever retries does so on a new one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nemesis.reference.network.errors import NetworkError, RequestTimedOutError
from nemesis.reference.network.frames import FrameProtocol
from nemesis.reference.protocol import codec as wire_format
from nemesis.reference.protocol.codec import Codec
from nemesis.reference.protocol.errors import ProtocolError
from nemesis.reference.protocol.schema import response_class


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
        self._caller: Caller | None = None
        self._correlation_id = 0
        self._written = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        """Send a kio request and return the kio response of the same version.

        Raises ``RequestTimedOutError`` after ``timeout_s`` seconds and ``NetworkError`` on any other failure; both
        leave the connection closed, as a cancellation does.
        """
        async with self._lock:
            self._written = False
            deadline = asyncio.get_running_loop().time() + timeout_s
            try:
                return await self._exchange((host, port), request, deadline)
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

    async def _exchange(self, address: tuple[str, int], request: Any, deadline: float) -> Any:
        caller = self._connected_to(address) or await self._connect(address, deadline)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = self._codec.encode_request(
            request, correlation_id=self._correlation_id, client_id=self._client_id
        )
        self._written = True
        answer = await caller.ask(frame, deadline=deadline)
        correlation_id, response = self._codec.decode_response(
            answer, response_class(type(request))
        )
        if correlation_id != self._correlation_id:
            raise ProtocolError(
                f"answer to request {correlation_id} instead of {self._correlation_id}"
            )
        return response

    def _connected_to(self, address: tuple[str, int]) -> Caller | None:
        # A peer that closed an idle connection is noticed here, while nothing has been sent yet.
        if self._caller is not None and (address != self._address or self._caller.reader.at_end()):
            self._drop()
        return self._caller

    async def _connect(self, address: tuple[str, int], deadline: float) -> Caller:
        async with asyncio.timeout_at(deadline):
            _, self._caller = await asyncio.get_running_loop().create_connection(
                lambda: Caller(max_bytes=self._max_response_bytes),
                *address,
                local_addr=self._source_address,
            )
        self._address = address
        return self._caller

    def _drop(self) -> None:
        if self._caller is not None:
            self._caller.transport.abort()
            self._caller = None


class Caller(FrameProtocol):
    """The end of a connection that asks: a frame out, then a frame in."""

    def __init__(self, *, max_bytes: int) -> None:
        super().__init__(max_bytes=max_bytes)
        self._answer: asyncio.Future[bytes] | None = None

    async def ask(self, frame: bytes, *, deadline: float) -> bytes:
        """Send a frame and return the next one that comes. One at a time; after an error there is no other.

        Raises ``TimeoutError`` at the deadline (in the loop's time) and what ``next_frame`` does. How much of the frame
        was taken is not waited for: nothing else is sent before the answer.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        self._answer = answer
        time_is_up = loop.call_at(deadline, _fail, answer, TimeoutError())
        self.transport.write(frame)
        self.progressed()
        try:
            return await answer
        finally:
            time_is_up.cancel()

    def progressed(self) -> None:
        answer = self._answer
        if answer is None or answer.done():
            return
        try:
            frame = self.reader.next_frame()
        except (OSError, EOFError, ProtocolError) as error:
            answer.set_exception(error)
        else:
            if frame is not None:
                answer.set_result(frame)


def _fail(answer: asyncio.Future[bytes], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)

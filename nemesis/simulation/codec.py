"""A codec that does no work: messages cross the simulated network by reference.

Brokers and clients of a simulation share one process, so that encoding a message only to decode it again is most of
what a request costs. Here a frame is what those who look at streams need (size, API key, version, correlation id) and
the number under which this codec keeps the message. Decoding takes the message out.

It is sound because kio's messages are frozen, and because what brokers and clients make equals what the real codec
would make of it, types included; the tests compare every message of a cluster. A schedule must not depend on
the codec: nothing random happens here, and nothing may depend on the size of a frame.

Messages inside messages (subscriptions and assignments of consumers) are bytes here, too: brokers store them.

Limit: a message whose frame is never read (its connection was reset) is kept as long as the codec.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from struct import Struct
from typing import Any

from nemesis.reference.protocol.codec import SIZE_BYTES, Request
from nemesis.reference.protocol.errors import ProtocolError, UnsupportedVersionError
from nemesis.workloads.kafka import codec as wire_format

_REQUEST = Struct(">hhiq")
_RESPONSE = Struct(">iq")
_REQUEST_FRAME = Struct(">ihhiq")
_RESPONSE_FRAME = Struct(">iiq")


class ByReferenceCodec:
    """The codec of all brokers and clients of one simulation (for both sides' ``Codec`` protocols)."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._kept: dict[int, tuple[str | None, Any]] = {}

    def encode_request(self, message: Any, *, correlation_id: int, client_id: str) -> bytes:
        """The whole frame; starts as Kafka's does, up to the correlation id."""
        return _REQUEST_FRAME.pack(
            _REQUEST_FRAME.size - SIZE_BYTES,
            message.__api_key__,
            message.__version__,
            correlation_id,
            self._store(client_id, message),
        )

    def decode_request(self, frame: bytes, *, is_offered: Callable[[int, int], bool]) -> Request:
        """Raises ``UnsupportedVersionError``, and ``ProtocolError`` for what this codec has not encoded."""
        if len(frame) != _REQUEST.size:
            raise ProtocolError(f"{len(frame)} bytes are no request by reference")
        api_key, api_version, correlation_id, token = _REQUEST.unpack(frame)
        if not is_offered(api_key, api_version):
            raise UnsupportedVersionError(api_key, api_version, correlation_id)
        client_id, message = self._take(token)
        return Request(api_key, api_version, correlation_id, client_id, message)

    def encode_response(self, message: Any, *, correlation_id: int) -> bytes:
        """The whole frame."""
        size = _RESPONSE_FRAME.size - SIZE_BYTES
        return _RESPONSE_FRAME.pack(size, correlation_id, self._store(None, message))

    def decode_response(self, frame: bytes, response: type[Any]) -> tuple[int, Any]:
        """The correlation id and the message; raises ``ProtocolError`` unless it is one of class ``response``."""
        if len(frame) != _RESPONSE.size:
            raise ProtocolError(f"{len(frame)} bytes are no response by reference")
        correlation_id, token = _RESPONSE.unpack(frame)
        _, message = self._take(token)
        if type(message) is not response:
            raise ProtocolError(f"a {type(message).__name__} where a {response.__name__} must be")
        return correlation_id, message

    def encode_embedded(self, message: Any) -> bytes:
        """Real bytes: brokers write them to logs and read them there."""
        return wire_format.encode_embedded(message)

    def decode_embedded(self, data: bytes, entity: type[Any]) -> Any:
        """The message of these bytes; raises ValueError for any other bytes."""
        return wire_format.decode_embedded(data, entity)

    def _store(self, client_id: str | None, message: Any) -> int:
        token = next(self._tokens)
        self._kept[token] = (client_id, message)
        return token

    def _take(self, token: int) -> tuple[str | None, Any]:
        try:
            return self._kept.pop(token)
        except KeyError:
            raise ProtocolError(f"no message is kept under {token}") from None

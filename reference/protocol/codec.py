"""Frames to messages and back: Kafka's request and response encoding, of kio's messages.

A frame is a four-byte size, a header and a message. The functions that encode return whole frames;
those that decode take what follows the size. kio's ``__header_schema__`` knows the header of every
message, the old header of an ApiVersions response included. Decoding raises ``ProtocolError`` and
nothing else, whatever the bytes are, in time bounded by the frame's size (see ``decoding``).

The functions of this module are the ``Codec`` that a broker uses unless it is given another one.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple, Protocol

from kio.index import load_request_schema

from nemesis.reference.protocol.decoding import read_entity
from nemesis.reference.protocol.encoding import write_entity
from nemesis.reference.protocol.errors import ProtocolError, UnsupportedVersionError
from nemesis.reference.protocol.schema import cached, maker

_SIZE = Struct(">i")
_HEADER_START = Struct(">hhi")

SIZE_BYTES = _SIZE.size

_request_class = cached(load_request_schema)  # kio resolves the name by import each time


class Request(NamedTuple):
    """A decoded request: what its header says, and the kio message."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    message: Any


class Codec(Protocol):
    """Frames and messages; this module is one. Encoding returns whole frames, decoding takes what follows the size."""

    def encode_request(self, message: Any, *, correlation_id: int, client_id: str) -> bytes: ...
    def decode_request(self, frame: bytes, *, is_offered: Callable[[int, int], bool]) -> Request:
        """Raises ``ProtocolError``; if only its version is not offered, ``UnsupportedVersionError``."""

    def encode_response(self, message: Any, *, correlation_id: int) -> bytes: ...
    def decode_response(self, frame: bytes, response: type[Any]) -> tuple[int, Any]:
        """The correlation id and the message; raises ``ProtocolError``."""


def decode_size(start: bytes | bytearray, *, max_bytes: int) -> int:
    """The size that stands at the start of a frame; raises ``ProtocolError`` when it is absurd."""
    (size,) = _SIZE.unpack_from(start)
    if not 0 < size <= max_bytes:
        raise ProtocolError(f"a frame claims {size} bytes; allowed are 1 to {max_bytes}")
    return int(size)


def decode_request(frame: bytes, *, is_offered: Callable[[int, int], bool]) -> Request:
    """Decode a request whose (API key, version) is offered, else raise ``UnsupportedVersionError``."""
    if len(frame) < _HEADER_START.size:
        raise ProtocolError(f"a request of {len(frame)} bytes has no header")
    api_key, api_version, correlation_id = _HEADER_START.unpack_from(frame)
    if not is_offered(api_key, api_version):
        raise UnsupportedVersionError(api_key, api_version, correlation_id)
    schema: Any = _request_class(api_key, api_version)
    header, offset = _decode(schema.__header_schema__, frame, 0)
    message, _ = _decode(schema, frame, offset)
    return Request(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=getattr(header, "client_id", None),
        message=message,
    )


def encode_request(message: Any, *, correlation_id: int, client_id: str) -> bytes:
    """The whole frame of a request, in the version of the message's class."""
    header: Any = message.__header_schema__
    values: dict[str, Any] = {
        "request_api_key": message.__api_key__,
        "request_api_version": message.__version__,
        "correlation_id": correlation_id,
    }
    if "client_id" in header.__dataclass_fields__:
        values["client_id"] = client_id
    return _encode(maker(header)(**values), message)


def decode_response(frame: bytes, response: type[Any]) -> tuple[int, Any]:
    """The correlation id and the message of a response of class ``response``."""
    header, offset = _decode(response.__header_schema__, frame, 0)
    message, _ = _decode(response, frame, offset)
    return header.correlation_id, message


def encode_response(message: Any, *, correlation_id: int) -> bytes:
    """The whole frame of a response."""
    header = maker(message.__header_schema__)(correlation_id=correlation_id)
    return _encode(header, message)


def _decode(entity: type[Any], frame: bytes, offset: int) -> tuple[Any, int]:
    try:
        return read_entity(entity, frame, offset)
    except ProtocolError:
        raise
    except Exception as error:  # noqa: BLE001
        # What bad values raise (text, error codes, dates) has no common class.
        raise ProtocolError(f"{entity.__name__} cannot be read: {error!r}") from None


def _encode(header: Any, message: Any) -> bytes:
    pieces = [b""]
    write_entity(header, pieces)
    write_entity(message, pieces)
    pieces[0] = _SIZE.pack(sum(map(len, pieces)))
    return b"".join(pieces)

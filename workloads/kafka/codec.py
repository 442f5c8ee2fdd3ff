"""Frames to messages and back, by kio alone: the client shares no code with the brokers that it tests.

The functions of this module are the ``Codec`` that a client uses unless it is given another one. A simulation may
give one that passes messages by reference.
"""

from __future__ import annotations

import io
import struct
from typing import Any, Protocol

from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i32

_API_VERSIONS_KEY = 18
_VERSION = struct.Struct(">h")


class Codec(Protocol):
    """What a client needs to know of frames; this module is one."""

    def encode_request(self, message: Any, *, correlation_id: int, client_id: str) -> bytes:
        """The whole frame, its size in front."""

    def decode_response(self, frame: bytes, response: type[Any]) -> tuple[int, Any]:
        """The correlation id and the message of what follows the size; raises ValueError for any other bytes."""

    def encode_embedded(self, message: Any) -> bytes:
        """A message that another message has as bytes (a subscription, an assignment): its version in front."""

    def decode_embedded(self, data: bytes, entity: type[Any]) -> Any:
        """The message of this class; raises ValueError for any other bytes. Newer versions only add to its end."""


def encode_request(message: Any, *, correlation_id: int, client_id: str) -> bytes:
    """See ``Codec``."""
    header_type = message.__header_schema__
    buffer = io.BytesIO()
    header = header_type(
        request_api_key=message.__api_key__,
        request_api_version=message.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    entity_writer(header_type)(buffer, header)
    entity_writer(type(message))(buffer, message)
    body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def decode_response(frame: bytes, response: type[Any]) -> tuple[int, Any]:
    """See ``Codec``."""
    header_type = (
        ResponseHeaderV0
        if response.__api_key__ == _API_VERSIONS_KEY
        else response.__header_schema__
    )
    try:
        header, size = entity_reader(header_type)(frame, 0)
        message, _ = entity_reader(response)(frame, size)
    except (SerialError, KeyError, struct.error) as error:
        raise ValueError(f"no {response.__name__}: {error!r}") from error
    return header.correlation_id, message


def encode_embedded(message: Any) -> bytes:
    """See ``Codec``."""
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return _VERSION.pack(message.__version__) + buffer.getvalue()


def decode_embedded(data: bytes, entity: type[Any]) -> Any:
    """See ``Codec``."""
    try:
        (version,) = _VERSION.unpack_from(data)
        message, _ = entity_reader(entity)(data, _VERSION.size)
    except (SerialError, struct.error, IndexError) as error:
        raise ValueError(f"no {entity.__name__}: {error!r}") from error
    if version < entity.__version__:
        raise ValueError(
            f"{entity.__name__}: expected version {entity.__version__} or newer, got {version}"
        )
    return message

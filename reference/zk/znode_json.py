"""JSON in znodes, as Kafka writes it: an object; anything else is a ``ZnodeFormatError`` that names path and value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nemesis.reference.zk.errors import ZnodeFormatError


def encode(value: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(value)


def decode(path: str, data: bytes) -> dict[str, Any]:
    """Return the object; raises ``ZnodeFormatError`` when the data is none."""
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise ZnodeFormatError(f"{path} does not hold JSON: {error}: {data[:200]!r}") from error
    if not isinstance(value, dict):
        raise ZnodeFormatError(
            f"{path} holds {type(value).__name__}, not an object: {data[:200]!r}"
        )
    return value


def int32(value: object) -> int:
    """Return what fits the numbers of the protocol; raises ``ValueError`` for anything else, as for a string of digits.

    One that does not fit would be noticed only when a request with it cannot be written, and then no other is sent.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise ValueError(f"{value!r} is not a number of 32 bits")
    return value


def ordinal(value: object) -> int:
    """Return the number of a partition or broker; raises ``ValueError`` for anything else, negative ones included."""
    if (number := int32(value)) < 0:
        raise ValueError(f"{number} is negative")
    return number


def integer(path: str, value: Mapping[str, Any], key: str) -> int:
    """Return a number of the object; raises ``ZnodeFormatError`` when there is none under the key."""
    number = value.get(key)
    if not isinstance(number, int):
        raise ZnodeFormatError(f"{path} has {key} {number!r}, not a number")
    return number

"""The codecs of record batches as a client writes and reads them, apart from the code of the brokers under test.

A codec's number is in the lowest three bits of a batch's attributes. Snappy is framed as Java's clients frame it
(xerial): a header of 16 bytes, then blocks, each after its length as i32.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Literal

import cramjam

from nemesis.workloads.kafka.errors import BadRecordBatch

CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: Final[tuple[CodecName, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")
"""By number."""

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_LENGTH: Final = struct.Struct(">i")


def compressed(data: bytes, codec: CodecName) -> bytes:
    """Return the records of a batch as the codec writes them."""
    match codec:
        case "none":
            return data
        case "gzip":
            return bytes(cramjam.gzip.compress(data))
        case "snappy":
            block = bytes(cramjam.snappy.compress_raw(data))
            return _XERIAL_HEADER + _LENGTH.pack(len(block)) + block
        case "lz4":
            return bytes(cramjam.lz4.compress(data))
        case "zstd":
            return bytes(cramjam.zstd.compress(data))


def decompressed(data: bytes, number: int) -> bytes:
    """Return the records of a batch whose attributes state the codec; raises ``BadRecordBatch``."""
    if not 0 <= number < len(CODECS):
        raise BadRecordBatch(f"compression codec {number} does not exist")
    readers: dict[CodecName, Callable[[bytes], object]] = {
        "gzip": cramjam.gzip.decompress,
        "snappy": _without_xerial_frames,
        "lz4": cramjam.lz4.decompress,
        "zstd": cramjam.zstd.decompress,
    }
    codec = CODECS[number]
    if codec == "none":
        return data
    try:
        return bytes(readers[codec](data))  # type: ignore[call-overload, no-any-return]
    except (cramjam.DecompressionError, struct.error) as error:
        raise BadRecordBatch(f"{codec} cannot read it: {error}") from error


def _without_xerial_frames(data: bytes) -> bytes:
    if not data.startswith(_XERIAL_HEADER[:8]):
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks, position = bytearray(), len(_XERIAL_HEADER)
    while position < len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        blocks += bytes(cramjam.snappy.decompress_raw(data[position : position + length]))
        position += length
    return bytes(blocks)

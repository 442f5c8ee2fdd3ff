"""What the records of a batch are compressed with: the four codecs of the message format, by their number in it.

* gzip: as it is.
* snappy: written in the blocks of snappy-java, which is what Kafka's clients do; read from those, or from one raw
  block, which is what librdkafka writes.
* lz4: frames with independent blocks; Kafka's clients read no others.
* zstd: frames.

Source: org.apache.kafka.common.compress and KIP-110 of Kafka 3.9; the library is cramjam (docs/decisions.md).
Limit: what is decompressed is in memory as a whole.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, error
from typing import Final

import cramjam

from nemesis.reference.protocol.record_batch import CorruptRecordError

_SNAPPY_HEADER: Final = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
"""Magic, version and the oldest version that can read it."""
_SNAPPY_MAGIC: Final = _SNAPPY_HEADER[:8]
_SNAPPY_BLOCK: Final = 32 * 1024
_LENGTH: Final = Struct(">i")


class CompressionType(IntEnum):
    """The lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompressed(codec: int, data: bytes) -> bytes:
    """Return what was compressed; raises CorruptRecordError for other bytes, or a codec that there is not."""
    try:
        match codec:
            case CompressionType.NONE:
                return data
            case CompressionType.GZIP:
                return bytes(cramjam.gzip.decompress(data))
            case CompressionType.SNAPPY:
                return _from_snappy(data)
            case CompressionType.LZ4:
                return bytes(cramjam.lz4.decompress(data))
            case CompressionType.ZSTD:
                return bytes(cramjam.zstd.decompress(data))
    except (cramjam.DecompressionError, error) as failure:
        name = CompressionType(codec).name.lower()
        raise CorruptRecordError(f"the records are no {name}: {failure}") from failure
    raise CorruptRecordError(f"there is no codec {codec}")


def compressed(codec: int, data: bytes) -> bytes:
    """Return the data compressed; the same bytes each time."""
    match CompressionType(codec):
        case CompressionType.NONE:
            return data
        case CompressionType.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case CompressionType.SNAPPY:
            return _to_snappy(data)
        case CompressionType.LZ4:
            stream = cramjam.lz4.Compressor(block_linked=False)
            stream.compress(data)
            return bytes(stream.finish())
        case CompressionType.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def _from_snappy(data: bytes) -> bytes:
    if not data.startswith(_SNAPPY_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(data))
    parts, start = [], len(_SNAPPY_HEADER)
    while start < len(data):
        (length,) = _LENGTH.unpack_from(data, start)
        start += _LENGTH.size
        if not 0 < length <= len(data) - start:
            raise CorruptRecordError(f"a snappy block of {length} bytes at {start} of {len(data)}")
        parts.append(bytes(cramjam.snappy.decompress_raw(data[start : start + length])))
        start += length
    return b"".join(parts)


def _to_snappy(data: bytes) -> bytes:
    parts = [_SNAPPY_HEADER]
    for start in range(0, len(data), _SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK]))
        parts += [_LENGTH.pack(len(block)), block]
    return b"".join(parts)

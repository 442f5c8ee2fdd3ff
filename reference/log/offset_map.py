"""The last offset of each key in a stretch of a log: what the cleaner decides by.

Keys are kept as digests of 16 bytes, as Kafka keeps them, so memory depends on their number and not on their size. Two
keys with one digest would be taken for one: of 2**64 keys that is to be expected once.

Source: kafka's OffsetMap and SkimpyOffsetMap of Kafka 3.9; the digest is another one.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_DIGEST_BYTES: Final = 16


class OffsetMap:
    """Holds as many keys as it is told."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1
        """Of the records that were offered and taken; what is behind it the map knows nothing of."""

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Take note of a record, in order of offset; return whether there was room for its key."""
        digest = _digest(key)
        if digest not in self._offsets and len(self._offsets) >= self._capacity:
            return False
        self._offsets[digest] = offset
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of the key; −1 when it did not occur."""
        return self._offsets.get(_digest(key), -1)

    def update_latest_offset(self, offset: int) -> None:
        """All records up to this offset have been taken."""
        self.latest_offset = offset


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()

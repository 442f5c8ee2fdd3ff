"""The fields of the records that coordinators write: what the formats of their topics share.

A key or value begins with its version (int16). Strings have a length (int16), bytes and arrays have one of four bytes;
−1 is null. Compact versions have varints of one more as lengths, 0 is null, and tagged fields follow.

Source: org.apache.kafka.common.protocol.MessageUtil and the generated messages of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error
from typing import Final, TypeVar

from nemesis.reference.protocol.decoding import read_unsigned_varint
from nemesis.reference.protocol.errors import ProtocolError
from nemesis.reference.protocol.record_batch import CorruptRecordError

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")

Item = TypeVar("Item")


def string_field(text: str | None) -> bytes:
    if text is None:
        return _INT16.pack(-1)
    data = text.encode()
    return _INT16.pack(len(data)) + data


class RecordReader:
    """Reads a key or value from its start. Every method raises CorruptRecordError when the bytes do not suffice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._is_compact = False

    def version(self, highest: int, first_compact: int) -> int:
        """Read the version: expected 0 to ``highest``; from ``first_compact`` on the fields are compact."""
        version = self.number(_INT16)
        if not 0 <= version <= highest:
            raise CorruptRecordError(f"a value has version {version}: expected 0 to {highest}")
        self._is_compact = version >= first_compact
        return version

    def number(self, layout: Struct) -> int:
        try:
            (number,) = layout.unpack_from(self._data, self._position)
        except error:
            raise CorruptRecordError(f"a record ends at byte {len(self._data)}") from None
        self._position += layout.size
        return int(number)

    def text(self) -> str:
        text = self.nullable_text()
        if text is None:
            raise CorruptRecordError("null where a string must be")
        return text

    def nullable_text(self) -> str | None:
        length = self._length(_INT16)
        try:
            return None if length < 0 else self._take(length).decode()
        except UnicodeDecodeError as failure:
            raise CorruptRecordError(f"a string is not UTF-8: {failure}") from None

    def data(self) -> bytes:
        return self._take(self._length(_INT32))

    def array(self, read_item: Callable[[], Item]) -> tuple[Item, ...]:
        return self.nullable_array(read_item) or ()

    def nullable_array(self, read_item: Callable[[], Item]) -> tuple[Item, ...] | None:
        length = self._length(_INT32)
        return None if length < 0 else tuple(read_item() for _ in range(length))

    def skip_tags(self) -> None:
        """Skip the tagged fields at the end of a compact structure."""
        if self._is_compact:
            for _ in range(self._varint()):
                self._varint()
                self._take(self._varint())

    def _length(self, layout: Struct) -> int:
        return self._varint() - 1 if self._is_compact else self.number(layout)

    def _varint(self) -> int:
        try:
            value, self._position = read_unsigned_varint(self._data, self._position)
        except ProtocolError as failure:
            raise CorruptRecordError(str(failure)) from None
        return value

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise CorruptRecordError(f"a field of {size} bytes in {len(self._data)} bytes")
        taken = self._data[self._position : end]
        self._position = end
        return taken

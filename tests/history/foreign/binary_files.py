"""Writes Jepsen's binary store as its definition says: Fressian, blocks with checksums, an index at the end.

Written from ``org.fressian.FressianWriter`` and ``jepsen.store.format``, independently of what reads it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from nemesis.history.foreign.edn import EdnSet, Keyword, Symbol

INDEX, FRESSIAN, PARTIAL_MAP, STREAM, BIG_VECTOR = 1, 2, 3, 4, 5
OWN: Final = ("index", "time", "type", "process", "f", "value")
SHORT: Final = {"map": 0xC0, "set": 0xC1, "sym": 0xC9, "key": 0xCA}
PACKED: Final = ((13, 0x50, 1), (19, 0x68, 2), (26, 0x72, 3), (34, 0x76, 4), (42, 0x7A, 5))
"""Bits of an integer with its sign, the code of zero, and how many bytes follow."""


class Reference(int):
    """The id of the block that has the value."""


class Tuple2(tuple[Any, ...]):
    """Clojure's map entry, which ``jepsen.independent`` uses for a key and a value."""

    __slots__ = ()


class Writer:
    """Writes values; texts of keywords and types of operations go to the caches, as Clojure's writer decides."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._values: dict[Any, int] = {}
        self._tags: dict[str, int] = {}

    def write(self, value: Any) -> None:
        if value is None or isinstance(value, bool):
            self.data.append({None: 0xF7, True: 0xF5, False: 0xF6}[value])
        elif isinstance(value, Reference):
            self._struct("block-ref", int(value))
        elif isinstance(value, int):
            self._integer(value)
        elif isinstance(value, float):
            self._float(value)
        elif isinstance(value, Keyword | Symbol):
            self._word("key" if isinstance(value, Keyword) else "sym", value)
        elif isinstance(value, str):
            self._string(value)
        elif isinstance(value, Tuple2):
            self._struct("map-entry", *value)
        elif isinstance(value, EdnSet):
            self._struct("persistent-hash-set", tuple(value) or None)
        elif isinstance(value, tuple):
            self._list(value)
        else:
            self._tag("map", 1)
            self._list([item for entry in value.items() for item in entry])

    def operation(self, form: dict[str, Any]) -> None:
        """Write an operation as Jepsen does since version 0.3."""
        other = {key: value for key, value in form.items() if key not in OWN}
        own = [form.get(name) for name in OWN]
        self._tag("jepsen.history.Op", len(OWN) + 1)
        for name, value in zip(OWN, own, strict=True):
            if name in ("type", "f"):
                self._cached(value)
            else:
                self.write(value)
        self.write(other or None)

    def _struct(self, tag: str, *fields: Any) -> None:
        self._tag(tag, len(fields))
        for value in fields:
            self.write(value)

    def _tag(self, tag: str, fields: int) -> None:
        if tag in SHORT:
            self.data.append(SHORT[tag])
        elif tag not in self._tags:
            self._tags[tag] = len(self._tags)
            self.data.append(0xEF)
            self._string(tag)
            self._integer(fields)
        elif self._tags[tag] < 16:
            self.data.append(0xA0 + self._tags[tag])
        else:
            self.data.append(0xF0)
            self._integer(self._tags[tag])

    def _cached(self, value: Any) -> None:
        if value in (None, ""):
            self.write(value)
        elif value not in self._values:
            self._values[value] = len(self._values)
            self.data.append(0xCD)
            self.write(value)
        elif self._values[value] < 32:
            self.data.append(0x80 + self._values[value])
        else:
            self.data.append(0xCC)
            self._integer(self._values[value])

    def _word(self, tag: str, word: str) -> None:
        namespace, _, name = word.rpartition("/")
        self._tag(tag, 2)
        for text in (namespace or None, name):
            # The cache tells texts from keywords of the same name.
            self._cached(Text(text) if text else None)

    def _integer(self, number: int) -> None:
        bits = (number if number >= 0 else ~number).bit_length() + 1
        if bits <= 7 and number >= -1:
            self.data.append(number & 0xFF)
            return
        for most, zero, count in (*PACKED, (50, 0x7E, 6)):
            if bits <= most:
                self.data.append(zero + (number >> 8 * count))
                self.data += (number & (1 << 8 * count) - 1).to_bytes(count, "big")
                return
        self.data.append(0xF8)
        self.data += number.to_bytes(8, "big", signed=True)

    def _float(self, number: float) -> None:
        if number in (0.0, 1.0):
            self.data.append(0xFB if number == 0.0 else 0xFC)
        else:
            self.data.append(0xFA)
            self.data += struct.pack(">d", number)

    def _string(self, text: str) -> None:
        # Java writes both halves of a character that takes two on their own.
        halves = text.encode("utf-16-be", "surrogatepass")
        units = [chr(unit) for (unit,) in struct.iter_unpack(">H", halves)]
        data = "".join(units).encode("utf-8", "surrogatepass")
        if len(data) < 8:
            self.data.append(0xDA + len(data))
        else:
            self.data.append(0xE3)
            self._integer(len(data))
        self.data += data

    def _list(self, items: Sequence[Any]) -> None:
        if len(items) < 8:
            self.data.append(0xE4 + len(items))
        else:
            self.data.append(0xEC)
            self._integer(len(items))
        for item in items:
            self.write(item)


class Text(str):
    """A text in the cache, which differs from the keyword of its name."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(("text", str(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and str(self) == str(other)


def fressian(*values: Any) -> bytes:
    writer = Writer()
    for value in values:
        writer.write(value)
    return bytes(writer.data)


def stream(forms: Iterable[dict[str, Any]]) -> bytes:
    writer = Writer()
    for form in forms:
        writer.operation(form)
    return bytes(writer.data)


def vector(count: int, chunks: Iterable[tuple[int, int]]) -> bytes:
    """``chunks``: the index of the first element, and the block."""
    return struct.pack(">q", count) + b"".join(struct.pack(">qi", *chunk) for chunk in chunks)


def partial_map(entries: dict[Any, Any], rest: int = 0) -> bytes:
    return struct.pack(">i", rest) + fressian(entries)


def block(kind: int, data: bytes) -> bytes:
    """A block: the type takes 16 bytes, as in Jepsen's code."""

    def header(checksum: int) -> bytes:
        return struct.pack(">qIh", 28 + len(data), checksum, kind) + bytes(14)

    return header(zlib.crc32(data + header(0))) + data


def store(blocks: dict[int, bytes], root: int, version: int = 1) -> bytes:
    """Return a file with these blocks, by id, and an index."""
    data, offsets = b"", {}
    for number, written in blocks.items():
        offsets[number] = 18 + len(data)
        data += written
    entries = b"".join(struct.pack(">iq", *entry) for entry in offsets.items())
    index = block(INDEX, struct.pack(">i", root) + entries)
    return b"JEPSEN" + struct.pack(">iq", version, 18 + len(data)) + data + index

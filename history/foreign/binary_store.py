"""Jepsen's binary store, ``test.jepsen``: from its blocks to the maps of its operations.

    "JEPSEN" | version (4 bytes) | offset of the index block (8) | blocks ...

Integers are signed, and their first byte is the highest. A block is a header of 28 bytes and data: the length of both
(8 bytes), a checksum (4), a type (2) and 14 bytes of zeros, although the description in the source has no zeros. The
checksum is the CRC-32 of the data followed by the header with zeros instead of the checksum. The types:

1. index: the id of the root block (4), then the id (4) and the offset (8) of each block
2. Fressian: one value
3. partial map: the id of another map with the remaining entries (4; 0: none), then a map in Fressian
4. Fressian stream: values one after the other
5. big vector: the number of elements (8), then the index (8) and the block (4) of each chunk

The root is the map of the test. Its ``:history`` is the history, or refers to the block of the history. Before version
0.3 of Jepsen operations were plain maps.

Source: ``jepsen.store.format``. A block of the history that is damaged costs only its operations.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, Final

from nemesis.history.errors import ForeignHistoryError
from nemesis.history.foreign.edn import Tagged
from nemesis.history.foreign.fressian import BLOCK_REFERENCE, FressianError, Reader

MAGIC: Final = b"JEPSEN"
NEWEST: Final = 1
"""The newest version of the form."""
_FIRST: Final = struct.Struct(">iq")
_HEADER: Final = struct.Struct(">qiH14x")
_BLOCK: Final = struct.Struct(">iq")
_CHUNK: Final = struct.Struct(">qi")
_ID: Final = struct.Struct(">i")
_COUNT: Final = struct.Struct(">q")
INDEX, FRESSIAN, PARTIAL_MAP, STREAM, BIG_VECTOR = range(1, 6)
MAX_VECTORS: Final = 8
"""Big vectors in big vectors; more are a cycle."""
HISTORY: Final = "history"


class DamagedBlockError(ValueError):
    """A block cannot be read."""


@dataclass(frozen=True, slots=True)
class DamagedChunk:
    """Operations that cannot be read."""

    reason: str


Element = Any | DamagedChunk


def is_binary_store(beginning: bytes) -> bool:
    return beginning.startswith(MAGIC)


def read_forms(path: Path) -> Iterator[tuple[int, Element]]:
    """Yield the number of each operation, from 1, and its map; raises ForeignHistoryError, OSError.

    A damaged block of operations is one ``DamagedChunk``, with the number of its first operation.
    """
    with path.open("rb") as file:
        try:
            blocks = _Blocks.of(file)
            history = blocks.root_entry(HISTORY)
        except (DamagedBlockError, FressianError) as error:
            raise ForeignHistoryError(
                f"{path} is a binary store of Jepsen that cannot be read: {error}; give history.edn, which Jepsen "
                "writes in the same directory"
            ) from None
        if isinstance(history, _Reference):
            yield from _numbered(blocks.elements(history.block, 1))
        elif isinstance(history, tuple):
            yield from enumerate(history, start=1)


def _numbered(elements: Iterator[tuple[int | None, Element]]) -> Iterator[tuple[int, Element]]:
    """Number elements; those at the beginning of a chunk state their number."""
    number = 0
    for stated, element in elements:
        number = number + 1 if stated is None else stated
        yield number, element


@dataclass(frozen=True, slots=True)
class _Reference:
    """A value that is in a block of its own."""

    block: int


@dataclass(frozen=True, slots=True)
class _Blocks:
    file: BinaryIO
    root: int
    offsets: dict[int, int]

    @classmethod
    def of(cls, file: BinaryIO) -> _Blocks:
        head = file.read(len(MAGIC) + _FIRST.size)
        if len(head) < len(MAGIC) + _FIRST.size:
            raise DamagedBlockError("it is cut off")
        version, offset = _FIRST.unpack_from(head, len(MAGIC))
        if not 0 <= version <= NEWEST:
            raise DamagedBlockError(f"it has version {version}, and {NEWEST} is the newest known")
        kind, data = _read_block(file, offset)
        if kind != INDEX or (len(data) - _ID.size) % _BLOCK.size:
            raise DamagedBlockError("it has no index of blocks")
        offsets = dict(_BLOCK.iter_unpack(data[_ID.size :]))
        return cls(file, _ID.unpack_from(data)[0], offsets)

    def read(self, block: int) -> tuple[int, bytes]:
        """Return the type and the data of a block."""
        if block not in self.offsets:
            raise DamagedBlockError(f"block {block} is missing")
        try:
            return _read_block(self.file, self.offsets[block])
        except DamagedBlockError as error:
            raise DamagedBlockError(f"block {block} {error}") from None

    def root_entry(self, name: str) -> Any:
        """Return an entry of the map that is the root; None without it."""
        block, visited = self.root, set[int]()
        while block and block not in visited:
            visited.add(block)
            kind, data = self.read(block)
            block = 0
            if kind == PARTIAL_MAP:
                if len(data) < _ID.size:
                    raise DamagedBlockError("a map is cut off")
                block, data = _ID.unpack_from(data)[0], data[_ID.size :]
            entries = Reader(data).value()
            if isinstance(entries, dict) and name in entries:
                return _resolved(entries[name])
        return None

    def elements(
        self, block: int, first: int, depth: int = 0
    ) -> Iterator[tuple[int | None, Element]]:
        """Yield the elements of a vector; the first of each chunk with its number."""
        number: int | None = first
        try:
            kind, data = self.read(block)
            if kind == BIG_VECTOR and depth < MAX_VECTORS:
                for index, chunk in _CHUNK.iter_unpack(data[_COUNT.size :]):
                    yield from self.elements(chunk, first + index, depth + 1)
                return
            for element in _values(kind, data):
                yield number, element
                number = None
        except (DamagedBlockError, FressianError, struct.error) as error:
            yield number, DamagedChunk(str(error))


def _values(kind: int, data: bytes) -> Iterator[Any]:
    reader = Reader(data)
    if kind == STREAM:
        while not reader.is_at_end:
            yield reader.value()
    elif kind == FRESSIAN:
        yield from reader.value() or ()
    else:
        raise DamagedBlockError(f"has type {kind}, which is not a type of operations")


def _resolved(value: Any) -> Any:
    if isinstance(value, Tagged) and value.tag == BLOCK_REFERENCE:
        match value.value:
            case (int(block),):
                return _Reference(block)
    return value


def _read_block(file: BinaryIO, offset: int) -> tuple[int, bytes]:
    if offset < len(MAGIC) + _FIRST.size:
        raise DamagedBlockError("was never written")
    file.seek(offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise DamagedBlockError("is cut off")
    length, checksum, kind = _HEADER.unpack(header)
    if length < _HEADER.size:
        raise DamagedBlockError("has a wrong length")
    if offset + length > file.seek(0, SEEK_END):
        raise DamagedBlockError("is cut off")
    file.seek(offset + _HEADER.size)
    data = file.read(length - _HEADER.size)
    summed = zlib.crc32(_HEADER.pack(length, 0, kind), zlib.crc32(data))
    if summed != checksum & 0xFFFFFFFF:
        raise DamagedBlockError("has a wrong checksum")
    return kind, data

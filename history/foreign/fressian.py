"""Reading Fressian, the binary notation of Jepsen's store: values as ``edn`` has them.

A value begins with a code of one byte. Small integers, short texts and lists, and values of a cache are in the code
itself. A *struct* is a tag and a number of fields: ``key`` (a keyword) has two, its namespace and its name. Structs
that are repeated refer to a cache of tags; values that the writer chose to repeat refer to a cache of values. Both
caches belong to one ``Reader``, which reads values until its bytes end.

Sources: the codes of Datomic's fressian; the structs of Clojure's data.fressian and of ``jepsen.store.fressian``. Why
not a library: the registry of Python packages has none. Limits: values are nested ``edn.MAX_DEPTH`` deep at most, and
footers are not read, because Jepsen writes none.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from nemesis.history.foreign.edn import (
    MAX_DEPTH,
    TOO_DEEP,
    EdnSet,
    Keyword,
    Symbol,
    Tagged,
    printable,
)

OPERATION: Final = "jepsen.history.Op"
OPERATION_FIELDS: Final = ("index", "time", "type", "process", "f", "value")
BLOCK_REFERENCE: Final = "block-ref"

_ZEROS: Final = (0x50, 0x68, 0x72, 0x76, 0x7A, 0x7E)
"""The codes of integers of 2 to 7 bytes whose first bits are 0, ..."""
_ENDS: Final = (0x60, 0x70, 0x74, 0x78, 0x7C, 0x80)
"""... and behind the last code of each length."""
_VALUES, _VALUES_END = 0x80, 0xA0
_TAGS, _TAGS_END = 0xA0, 0xB0
_STRUCTS: Final = MappingProxyType(
    {
        0xB0: ("long[]", 2),
        0xB1: ("double[]", 2),
        0xB2: ("boolean[]", 2),
        0xB3: ("int[]", 2),
        0xB4: ("float[]", 2),
        0xB5: ("Object[]", 2),
        0xC0: ("map", 1),
        0xC1: ("set", 1),
        0xC3: ("uuid", 2),
        0xC4: ("regex", 1),
        0xC5: ("uri", 1),
        0xC6: ("bigint", 1),
        0xC7: ("bigdec", 2),
        0xC8: ("inst", 1),
        0xC9: ("sym", 2),
        0xCA: ("key", 2),
    }
)
"""Tags that have a code of their own, with their number of fields."""
_GET, _PUT = 0xCC, 0xCD
_BYTES, _BYTES_CHUNK, _BYTES_WHOLE = 0xD0, 0xD8, 0xD9
_TEXT, _TEXT_CHUNK, _TEXT_WHOLE = 0xDA, 0xE2, 0xE3
_LIST, _LIST_WHOLE, _CLOSED_LIST, _OPEN_LIST = 0xE4, 0xEC, 0xED, 0xEE
_STRUCT_TYPE, _STRUCT = 0xEF, 0xF0
_INTEGER, _FLOAT, _DOUBLE = 0xF8, 0xF9, 0xFA
_END, _RESET = 0xFD, 0xFE
_CONSTANTS: Final = MappingProxyType(
    {0xF5: True, 0xF6: False, 0xF7: None, 0xFB: 0.0, 0xFC: 1.0, 0xFF: -1}
)
_UNFINISHED: Final = object()
"""In the cache for a value that is still being read."""


class FressianError(ValueError):
    """Bytes are not Fressian."""


class Reader:
    """Reads the values of one block, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._depth = 0
        self._values: list[Any] = []
        self._tags: list[tuple[str, int]] = []
        self._read: dict[int, Callable[[], Any]] = {
            _GET: self._get,
            _PUT: self._put,
            _RESET: self._reset,
            _BYTES_CHUNK: self._bytes_in_chunks,
            _BYTES_WHOLE: self._whole_bytes,
            _TEXT_CHUNK: self._text_in_chunks,
            _TEXT_WHOLE: self._whole_text,
            _LIST_WHOLE: self._whole_list,
            _CLOSED_LIST: self._closed_list,
            _OPEN_LIST: self._open_list,
            _STRUCT_TYPE: self._new_struct,
            _STRUCT: self._known_struct,
            _INTEGER: self._whole_integer,
            _FLOAT: self._float,
            _DOUBLE: self._double,
        }
        """What reads the value behind a code."""

    @property
    def is_at_end(self) -> bool:
        return self._position >= len(self._data)

    def value(self) -> Any:
        """Return the next value; raises FressianError."""
        return self._value(self._byte())

    def _value(self, code: int) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FressianError(TOO_DEEP)
        value = self._coded(code)
        self._depth -= 1
        return value

    def _coded(self, code: int) -> Any:
        if code < 0x40:
            return code
        if code < _VALUES:
            return self._packed_integer(code)
        if code < _VALUES_END:
            return self._cached(self._values, code - _VALUES)
        if code < _TAGS_END:
            return self._struct(*self._cached(self._tags, code - _TAGS))
        if _LIST <= code < _LIST_WHOLE:
            return self._list(code - _LIST)
        if _TEXT <= code < _TEXT_CHUNK:
            return _text(self._take(code - _TEXT))
        if _BYTES <= code < _BYTES_CHUNK:
            return self._take(code - _BYTES)
        if code in _STRUCTS:
            return self._struct(*_STRUCTS[code])
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        read = self._read.get(code)
        if read is None:
            raise FressianError(f"the code {code:#x} is unknown")
        return read()

    def _byte(self) -> int:
        if self.is_at_end:
            raise FressianError("it ends inside a value")
        self._position += 1
        return self._data[self._position - 1]

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0 or end > len(self._data):
            raise FressianError("it ends inside a value")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def _packed_integer(self, code: int) -> int:
        """An integer of 2 to 7 bytes: its first bits are in the code."""
        more = next(number for number, end in enumerate(_ENDS, start=1) if code < end)
        high = code - _ZEROS[more - 1]
        return (high << 8 * more) | int.from_bytes(self._take(more), "big")

    def _whole_integer(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def _float(self) -> float:
        number: float = struct.unpack(">f", self._take(4))[0]
        return number

    def _double(self) -> float:
        number: float = struct.unpack(">d", self._take(8))[0]
        return number

    def _count(self) -> int:
        count = self.value()
        if isinstance(count, bool) or not isinstance(count, int):
            raise FressianError("a length is not a number")
        return count

    def _cached(self, cache: list[Any], index: int) -> Any:
        if not 0 <= index < len(cache) or cache[index] is _UNFINISHED:
            raise FressianError("it refers to a value that it does not have")
        return cache[index]

    def _get(self) -> Any:
        return self._cached(self._values, self._count())

    def _put(self) -> Any:
        index = len(self._values)
        self._values.append(_UNFINISHED)
        value = self.value()
        self._values[index] = value
        return value

    def _reset(self) -> Any:
        self._values.clear()
        self._tags.clear()
        return self.value()

    def _list(self, count: int) -> tuple[Any, ...]:
        return tuple([self.value() for _ in range(count)])

    def _whole_list(self) -> tuple[Any, ...]:
        return self._list(self._count())

    def _closed_list(self) -> tuple[Any, ...]:
        items = []
        while (code := self._byte()) != _END:
            items.append(self._value(code))
        return tuple(items)

    def _open_list(self) -> tuple[Any, ...]:
        """A list that may end with the bytes."""
        items = []
        while not self.is_at_end and (code := self._byte()) != _END:
            items.append(self._value(code))
        return tuple(items)

    def _whole_bytes(self) -> bytes:
        return self._take(self._count())

    def _bytes_in_chunks(self) -> bytes:
        taken = self._take(self._count())
        while (code := self._byte()) == _BYTES_CHUNK:
            taken += self._take(self._count())
        if code != _BYTES_WHOLE:
            raise FressianError("bytes have no end")
        return taken + self._take(self._count())

    def _whole_text(self) -> str:
        return _text(self._take(self._count()))

    def _text_in_chunks(self) -> str:
        taken = self._take(self._count())
        while (code := self._byte()) == _TEXT_CHUNK:
            taken += self._take(self._count())
        if not (_TEXT <= code < _TEXT_CHUNK or code == _TEXT_WHOLE):
            raise FressianError("a text has no end")
        return _text(taken + self._take(self._count() if code == _TEXT_WHOLE else code - _TEXT))

    def _new_struct(self) -> Any:
        tag, fields = self.value(), self._count()
        if not isinstance(tag, str):
            raise FressianError("a tag is not a text")
        self._tags.append((tag, fields))
        return self._struct(tag, fields)

    def _known_struct(self) -> Any:
        return self._struct(*self._cached(self._tags, self._count()))

    def _struct(self, tag: str, fields: int) -> Any:
        if tag.endswith("[]"):
            return self._whole_list()
        values = self._list(fields)
        build = _BUILD.get(tag)
        if build is None:
            return Tagged(tag, values)
        try:
            return build(*values)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FressianError(f"{tag} has wrong fields: {error}") from None


def _text(data: bytes) -> str:
    """Return a text. Java writes each half of a character that takes two on its own."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
    return text if text.isascii() else printable(text)


def _named(namespace: str | None, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _map(items: tuple[Any, ...] | None) -> dict[Any, Any]:
    entries = items or ()
    return dict(zip(entries[::2], entries[1::2], strict=True))


def _operation(*fields: Any) -> dict[Any, Any]:
    """The map of an operation; its last field is a map of other entries."""
    *own, other = fields
    return {**(other or {}), **dict(zip(OPERATION_FIELDS, own, strict=True))}


def _set(items: tuple[Any, ...] | None) -> EdnSet:
    return EdnSet(items or ())


_BUILD: Final[MappingProxyType[str, Callable[..., Any]]] = MappingProxyType(
    {
        OPERATION: _operation,
        "map": _map,
        "set": _set,
        "persistent-hash-set": _set,
        "persistent-sorted-set": _set,
        "map-entry": lambda key, value: (key, value),
        "vec": lambda items: tuple(items or ()),
        "key": lambda namespace, name: Keyword(_named(namespace, name)),
        "sym": lambda namespace, name: Symbol(_named(namespace, name)),
        "record": lambda name, entries: Tagged(str(name), entries),
        "bigint": lambda data: int.from_bytes(data, "big", signed=True),
        "bigdec": lambda data, scale: Symbol(
            f"{int.from_bytes(data, 'big', signed=True)}E{-scale}M"
        ),
        "ratio": lambda above, below: Symbol(f"{above}/{below}"),
        "char": chr,
        "byte": int,
        "atom": lambda value: value,
        "throwable": lambda value: value,
        "date-time": lambda value: value,
        "instant": lambda value: value,
        "regex": lambda value: value,
        "uri": lambda value: value,
        "uuid": lambda data: Tagged("uuid", data.hex()),
        "inst": lambda value: Tagged("inst", value),
        "multiset": lambda counts: Tagged("multiset", counts),
    }
)

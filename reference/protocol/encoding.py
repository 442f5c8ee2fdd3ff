"""Writing kio's messages, compiled from the same schemas as ``decoding``: the pieces of a frame, to be joined once.

Neighbours of fixed size are packed at once, with the empty set of tagged fields behind them if that is all that
follows, so that most items of an array take one call. Values are not checked one by one as kio does: what does not
fit its field raises ``struct.error``, null where none may be a TypeError or AttributeError. Those are errors of ours,
since what is written here was made here. kio's writer is the oracle in the tests.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from operator import attrgetter
from struct import Struct, pack
from typing import Any
from uuid import UUID

from nemesis.reference.protocol.schema import (
    FIXED_FORMATS,
    FieldShape,
    cached,
    field_defaults,
    has_compact_lengths,
    tagged_shapes,
    untagged_shapes,
)

Write = Callable[[Any, list[bytes]], None]
"""Appends the bytes of a value."""

_ZERO_UUID = bytes(16)
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_NULL_STRUCT, _PRESENT_STRUCT = b"\xff", b"\x01"
_NO_TAGS = "x"
"""Format of the one zero byte that says so."""


def write_entity(entity: Any, pieces: list[bytes]) -> None:
    """Append the bytes of a kio entity."""
    _entity_writer(type(entity))(entity, pieces)


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; ``value`` must not be negative."""
    if value < 0x80:
        return _SMALL_VARINTS[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL_VARINTS = [bytes([value]) for value in range(0x80)]


@cached
def _entity_writer(entity: type[Any]) -> Write:
    steps: list[Write] = []
    pending: list[FieldShape] = []
    tagged = tagged_shapes(entity)
    for shape in untagged_shapes(entity):
        if not shape.is_array and shape.kafka_type in FIXED_FORMATS:
            pending.append(shape)
            continue
        if pending:
            steps.append(_fixed_step(pending, ""))
            pending = []
        steps.append(_field_step(shape.name, _field_writer(entity, shape)))
    has_no_tags = entity.__flexible__ and not tagged
    if pending or has_no_tags:
        steps.append(_fixed_step(pending, _NO_TAGS if has_no_tags else ""))
    if tagged:
        steps.append(_tagged_step(entity))
    if len(steps) == 1:
        return steps[0]

    def write(value: Any, pieces: list[bytes]) -> None:
        for step in steps:
            step(value, pieces)

    return write


def _fixed_step(shapes: list[FieldShape], ending: str) -> Write:
    """Neighbours of fixed size, packed at once."""
    layout = Struct(
        ">" + "".join(FIXED_FORMATS[shape.kafka_type or ""] for shape in shapes) + ending
    )
    pack_all = layout.pack
    conversions = [
        (index, convert)
        for index, shape in enumerate(shapes)
        if (convert := _conversion(shape)) is not None
    ]
    if not shapes:
        constant = pack_all()
        return lambda _value, pieces: pieces.append(constant)
    values_of = attrgetter(*(shape.name for shape in shapes))
    if len(shapes) == 1:
        convert = conversions[0][1] if conversions else _as_it_is
        return lambda value, pieces: pieces.append(pack_all(convert(values_of(value))))
    if not conversions:
        return lambda value, pieces: pieces.append(pack_all(*values_of(value)))

    def step(value: Any, pieces: list[bytes]) -> None:
        values = list(values_of(value))
        for index, convert in conversions:
            values[index] = convert(values[index])
        pieces.append(pack_all(*values))

    return step


def _as_it_is(value: Any) -> Any:
    return value


def _conversion(shape: FieldShape) -> Callable[[Any], Any] | None:
    """What makes the number on the wire of kio's value; None when they are the same."""
    match shape.kafka_type:
        case "timedelta_i32" | "timedelta_i64":
            return _milliseconds
        case "datetime_i64" if shape.is_nullable:
            return lambda time: -1 if time is None else _milliseconds_since_1970(time)
        case "datetime_i64":
            return _milliseconds_since_1970
        case "uuid":
            return _uuid_bytes
    return None


def _milliseconds(duration: datetime.timedelta) -> int:
    return round(duration.total_seconds() * 1000)


def _milliseconds_since_1970(time: datetime.datetime) -> int:
    return round(time.timestamp() * 1000)


def _uuid_bytes(value: UUID | None) -> bytes:
    return _ZERO_UUID if value is None else value.bytes


def _field_step(name: str, write: Write) -> Write:
    value_of = attrgetter(name)
    return lambda value, pieces: write(value_of(value), pieces)


def _field_writer(entity: type[Any], shape: FieldShape) -> Write:
    if shape.is_array:
        return _array_writer(entity, shape)
    item = _item_writer(entity, shape)
    if shape.entity is not None and shape.is_nullable:
        return _nullable_writer(item)
    return item


def _item_writer(entity: type[Any], shape: FieldShape) -> Write:
    if shape.entity is not None:
        return _entity_writer(shape.entity)
    kafka_type = shape.kafka_type or ""
    if kafka_type in FIXED_FORMATS:
        pack_one = Struct(">" + FIXED_FORMATS[kafka_type]).pack
        convert = _conversion(shape) or _as_it_is
        return lambda value, pieces: pieces.append(pack_one(convert(value)))
    is_string = kafka_type == "string"
    length = _length_writer(flexible=has_compact_lengths(entity, shape), is_short=is_string)
    is_nullable = shape.is_nullable and not shape.is_array
    return _bytes_writer(length, is_string=is_string, is_nullable=is_nullable)


def _length_writer(*, flexible: bool, is_short: bool) -> Callable[[int], bytes]:
    """Writes a length or count; −1 is null."""
    if flexible:
        return lambda length: unsigned_varint(length + 1)
    return _INT16.pack if is_short else _INT32.pack


def _bytes_writer(
    length_of: Callable[[int], bytes], *, is_string: bool, is_nullable: bool
) -> Write:
    null = length_of(-1) if is_nullable else None

    def write_bytes(value: bytes | None, pieces: list[bytes]) -> None:
        if value is None and null is not None:
            pieces.append(null)
            return
        data: Any = value
        pieces.append(length_of(len(data)))
        pieces.append(data)

    def write_string(value: str | None, pieces: list[bytes]) -> None:
        if value is None and null is not None:
            pieces.append(null)
            return
        text: Any = value
        data = text.encode()
        pieces.append(length_of(len(data)))
        pieces.append(data)

    return write_string if is_string else write_bytes


def _array_writer(entity: type[Any], shape: FieldShape) -> Write:
    length_of = _length_writer(flexible=entity.__flexible__, is_short=False)
    null = length_of(-1) if shape.is_nullable else None
    item_format = FIXED_FORMATS.get(shape.kafka_type or "")
    if item_format is not None and _conversion(shape) is None:

        def write_numbers(items: Any, pieces: list[bytes]) -> None:
            if items is None and null is not None:
                pieces.append(null)
                return
            pieces.append(length_of(len(items)))
            pieces.append(pack(f">{len(items)}{item_format}", *items))

        return write_numbers
    write_item = _item_writer(entity, shape)

    def write(items: Any, pieces: list[bytes]) -> None:
        if items is None and null is not None:
            pieces.append(null)
            return
        pieces.append(length_of(len(items)))
        for item in items:
            write_item(item, pieces)

    return write


def _nullable_writer(write_struct: Write) -> Write:
    """A struct behind a marker byte (KIP-893)."""

    def write(value: Any, pieces: list[bytes]) -> None:
        if value is None:
            pieces.append(_NULL_STRUCT)
            return
        pieces.append(_PRESENT_STRUCT)
        write_struct(value, pieces)

    return write


def _tagged_step(entity: type[Any]) -> Write:
    """Those that differ from their default, in the order of their tags (KIP-482)."""
    defaults = field_defaults(entity)
    fields = [
        (
            unsigned_varint(shape.tag or 0),
            attrgetter(shape.name),
            defaults[shape.name],
            _field_writer(entity, shape),
        )
        for shape in tagged_shapes(entity)
    ]

    def step(value: Any, pieces: list[bytes]) -> None:
        count = 0
        encoded: list[bytes] = []
        for tag, value_of, default, write in fields:
            field_value = value_of(value)
            if field_value is default or field_value == default:
                continue
            body: list[bytes] = []
            write(field_value, body)
            encoded += (tag, unsigned_varint(sum(map(len, body))), *body)
            count += 1
        pieces.append(unsigned_varint(count))
        pieces += encoded

    return step

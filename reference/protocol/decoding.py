"""Reading kio's messages from frames that may be hostile: every length is checked before it is believed.

kio's own reader trusts lengths: an array that claims 2³¹−1 items makes it loop, a negative string length makes it
walk backwards, a null where none may be yields None. This one is compiled from the same schemas, raises
``ProtocolError`` unless every length, count and tag fits the frame, and does work bounded by the frame's size: an
item takes at least one byte, and a count is compared with the bytes left before the loop. Fields of fixed size
that stand together are unpacked at once, which makes it several times as fast too.

Unknown tagged fields are skipped, and bytes after the message ignored, as Kafka does.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from struct import Struct
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial.readers import tz_aware_from_i64

from nemesis.reference.protocol.errors import ProtocolError
from nemesis.reference.protocol.schema import (
    FIXED_FORMATS,
    FieldShape,
    assembler,
    cached,
    field_defaults,
    has_compact_lengths,
    tagged_shapes,
    untagged_shapes,
)

Read = Callable[[bytes, int], tuple[Any, int]]
"""Returns the value that starts at the given offset, and the offset after it."""

_Step = Callable[[bytes, int, list[Any]], int]
"""Reads some fields of an entity, adds their values to the list and returns the offset after them."""

_VARINT_MAX_BYTES = 5
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_ZERO_UUID = bytes(16)
_ERROR_CODES = {code.value: code for code in ErrorCode}
_NULL_STRUCT, _PRESENT_STRUCT = 0xFF, 1


def read_entity(entity: type[Any], frame: bytes, offset: int) -> tuple[Any, int]:
    """Return the entity that starts at ``offset`` and where it ends.

    Raises ``ProtocolError`` when it does not fit, and what the types of its values raise (text, error codes, dates).
    """
    return _entity_reader(entity)(frame, offset)


def read_unsigned_varint(frame: bytes, offset: int) -> tuple[int, int]:
    """The value and the offset after it."""
    if offset < len(frame) and frame[offset] < 0x80:
        return frame[offset], offset + 1  # nearly every length, count and tag
    value = 0
    for index, byte in enumerate(frame[offset : offset + _VARINT_MAX_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, offset + index + 1
    raise ProtocolError("a varint is cut off or longer than five bytes")


def _within(frame: bytes, end: int) -> int:
    if end > len(frame):
        raise ProtocolError(f"a field ends at byte {end} of a frame of {len(frame)} bytes")
    return end


@cached
def _entity_reader(entity: type[Any]) -> Read:
    steps: list[_Step] = []
    pending: list[FieldShape] = []
    for shape in untagged_shapes(entity):
        if not shape.is_array and shape.kafka_type in FIXED_FORMATS:
            pending.append(shape)
        else:
            if pending:
                steps.append(_fixed_step(pending))
                pending = []
            steps.append(_field_step(_field_reader(entity, shape)))
    if pending:
        steps.append(_fixed_step(pending))
    if entity.__flexible__:
        steps.append(_tagged_step(entity))

    assemble = assembler(entity)

    def read(frame: bytes, offset: int) -> tuple[Any, int]:
        values: list[Any] = []
        for step in steps:
            offset = step(frame, offset, values)
        return assemble(values), offset

    return read


def _fixed_step(shapes: list[FieldShape]) -> _Step:
    """Neighbours of fixed size, unpacked at once."""
    layout = Struct(">" + "".join(FIXED_FORMATS[shape.kafka_type or ""] for shape in shapes))
    size, unpack = layout.size, layout.unpack_from
    conversions = [
        (index - len(shapes), convert)
        for index, shape in enumerate(shapes)
        if (convert := _conversion(shape)) is not None
    ]

    def step(frame: bytes, offset: int, values: list[Any]) -> int:
        end = _within(frame, offset + size)
        values += unpack(frame, offset)
        for index, convert in conversions:
            values[index] = convert(values[index])
        return end

    return step


def _conversion(shape: FieldShape) -> Callable[[Any], Any] | None:
    """What makes kio's value of the number on the wire; None when they are the same."""
    match shape.kafka_type:
        case "error_code":
            return _ERROR_CODES.__getitem__
        case "timedelta_i32" | "timedelta_i64":
            return lambda number: datetime.timedelta(milliseconds=number)
        case "datetime_i64" if shape.is_nullable:
            return lambda number: None if number == -1 else tz_aware_from_i64(number)
        case "datetime_i64":
            return tz_aware_from_i64
        case "uuid":
            return lambda data: None if data == _ZERO_UUID else UUID(bytes=data)
    return None


def _field_step(read: Read) -> _Step:
    def step(frame: bytes, offset: int, values: list[Any]) -> int:
        value, offset = read(frame, offset)
        values.append(value)
        return offset

    return step


def _field_reader(entity: type[Any], shape: FieldShape) -> Read:
    item = _item_reader(entity, shape)
    if shape.is_array:
        return _array_reader(item, shape, flexible=entity.__flexible__)
    if shape.entity is not None and shape.is_nullable:
        return _nullable_reader(item)
    return item


def _item_reader(entity: type[Any], shape: FieldShape) -> Read:
    if shape.entity is not None:
        return _entity_reader(shape.entity)
    if shape.kafka_type in FIXED_FORMATS:
        return _fixed_reader(shape)
    is_string = shape.kafka_type == "string"
    return _bytes_reader(
        _length_reader(flexible=has_compact_lengths(entity, shape), is_short=is_string),
        is_string=is_string,
        is_nullable=shape.is_nullable and not shape.is_array and shape.tag is None,
    )


def _fixed_reader(shape: FieldShape) -> Read:
    step = _fixed_step([shape])

    def read(frame: bytes, offset: int) -> tuple[Any, int]:
        values: list[Any] = []
        offset = step(frame, offset, values)
        return values[0], offset

    return read


def _length_reader(*, flexible: bool, is_short: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Reads a length or count and the offset after it; −1 is null, anything below is refused."""

    def compact(frame: bytes, offset: int) -> tuple[int, int]:
        if offset < len(frame) and frame[offset] < 0x80:
            return frame[offset] - 1, offset + 1
        value, offset = read_unsigned_varint(frame, offset)
        return value - 1, offset

    layout = _INT16 if is_short else _INT32

    def plain(frame: bytes, offset: int) -> tuple[int, int]:
        end = _within(frame, offset + layout.size)
        (value,) = layout.unpack_from(frame, offset)
        if value < -1:
            raise ProtocolError(f"a length is {value}")
        return value, end

    return compact if flexible else plain


def _bytes_reader(
    read_length: Callable[[bytes, int], tuple[int, int]], *, is_string: bool, is_nullable: bool
) -> Read:
    def read(frame: bytes, offset: int) -> tuple[str | bytes | None, int]:
        length, offset = read_length(frame, offset)
        if length < 0:
            if not is_nullable:
                raise ProtocolError("null where a string or bytes must be")
            return None, offset
        end = _within(frame, offset + length)
        data = frame[offset:end]
        return data.decode() if is_string else data, end

    return read


def _array_reader(item: Read, shape: FieldShape, *, flexible: bool) -> Read:
    read_count = _length_reader(flexible=flexible, is_short=False)
    item_format = FIXED_FORMATS.get(shape.kafka_type or "")
    item_min_bytes = 1 if item_format is None else Struct(">" + item_format).size

    def read(frame: bytes, offset: int) -> tuple[tuple[Any, ...] | None, int]:
        count, offset = read_count(frame, offset)
        if count < 0:
            if not shape.is_nullable:
                raise ProtocolError(f"null where the array {shape.name} must be")
            return None, offset
        if count * item_min_bytes > len(frame) - offset:
            raise ProtocolError(f"the array {shape.name} claims {count} items")
        items = []
        for _ in range(count):
            value, offset = item(frame, offset)
            items.append(value)
        return tuple(items), offset

    return read


def _nullable_reader(read_struct: Read) -> Read:
    """A struct behind a marker byte: −1 null, 1 present (KIP-893)."""

    def read(frame: bytes, offset: int) -> tuple[Any, int]:
        end = _within(frame, offset + 1)
        if frame[offset] == _NULL_STRUCT:
            return None, end
        if frame[offset] != _PRESENT_STRUCT:
            raise ProtocolError(f"{frame[offset]} where a struct is present or null")
        return read_struct(frame, end)

    return read


def _tagged_step(entity: type[Any]) -> _Step:
    """Fields that are not there have the default of their class."""
    shapes, defaults = tagged_shapes(entity), field_defaults(entity)
    default_values = [defaults[shape.name] for shape in shapes]
    tagged = {
        shape.tag: (index - len(shapes), _field_reader(entity, shape))
        for index, shape in enumerate(shapes)
    }

    def step(frame: bytes, offset: int, values: list[Any]) -> int:
        values += default_values
        count, offset = read_unsigned_varint(frame, offset)
        for _ in range(count):
            tag, offset = read_unsigned_varint(frame, offset)
            size, offset = read_unsigned_varint(frame, offset)
            if size > len(frame) - offset:
                raise ProtocolError(f"tagged field {tag} claims {size} bytes")
            if tag not in tagged:
                offset += size  # from a newer version than ours: to be skipped (KIP-482)
                continue
            index, read = tagged[tag]
            values[index], end = read(frame, offset)
            if end != offset + size:
                raise ProtocolError(f"tagged field {tag} is not {size} bytes long")
            offset = end
        return offset

    return step

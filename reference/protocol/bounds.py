"""Walking a frame by its schema before it is decoded, so that hostile lengths cost nothing.

kio's decoder trusts lengths: an array that claims 2³¹−1 items makes it loop, a negative string length makes it walk
backwards, a null where none may be yields None. ``check_bounds`` walks the same schema over the same bytes without
making any value and raises ``ProtocolError`` unless every length, count and tag fits the frame. Work is bounded by
the frame's size: an item takes at least one byte, and a count is compared with the bytes left before the loop.

Limit: kio cannot skip a tagged field that it does not know, so an unknown tag is refused here. Bytes after
the message are ignored, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from reference.protocol.errors import ProtocolError
from reference.protocol.schema import FieldShape, cached, field_shapes

Walk = Callable[[bytes, int], int]
"""Returns the offset after the thing that starts at the given offset."""

_FIXED_BYTES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}
_VARINT_MAX_BYTES = 5
_INT16 = Struct(">h")
_INT32 = Struct(">i")


def check_bounds(entity: type[Any], frame: bytes, offset: int) -> int:
    """Return where the entity that starts at ``offset`` ends; raises ``ProtocolError`` when it does not fit."""
    return _entity_walk(entity)(frame, offset)


def read_unsigned_varint(frame: bytes, offset: int) -> tuple[int, int]:
    """The value and the offset after it."""
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
def _entity_walk(entity: type[Any]) -> Walk:
    steps: list[Walk] = []
    tagged: dict[int, Walk] = {}
    pending = 0
    for shape in field_shapes(entity):
        if shape.tag is not None:
            tagged[shape.tag] = _field_walk(entity, shape)
        elif size := _fixed_bytes(shape):
            pending += size
        else:
            if pending:
                steps.append(_fixed_walk(pending))
                pending = 0
            steps.append(_field_walk(entity, shape))
    if pending:
        steps.append(_fixed_walk(pending))
    if entity.__flexible__:
        steps.append(_tagged_walk(tagged))

    def walk(frame: bytes, offset: int) -> int:
        for step in steps:
            offset = step(frame, offset)
        return offset

    return walk


def _fixed_bytes(shape: FieldShape) -> int:
    """Size of a field whose size does not depend on its content; 0 otherwise."""
    if shape.is_array or shape.kafka_type is None:
        return 0
    return _FIXED_BYTES.get(shape.kafka_type, 0)


def _fixed_walk(size: int) -> Walk:
    return lambda frame, offset: _within(frame, offset + size)


def _field_walk(entity: type[Any], shape: FieldShape) -> Walk:
    flexible = entity.__flexible__
    if shape.is_array:
        return _array_walk(_item_walk(entity, shape), _item_min_bytes(shape), shape, flexible)
    if shape.entity is not None:
        walk = _entity_walk(shape.entity)
        return _nullable_walk(walk) if shape.is_nullable else walk
    return _item_walk(entity, shape)


def _item_walk(entity: type[Any], shape: FieldShape) -> Walk:
    if shape.entity is not None:
        return _entity_walk(shape.entity)
    if size := _FIXED_BYTES.get(shape.kafka_type or ""):
        return _fixed_walk(size)
    # A request header keeps the old string format for its client id in every version.
    is_client_id = entity.__name__ == "RequestHeader" and shape.name == "client_id"
    flexible = entity.__flexible__ and not is_client_id
    nullable = shape.is_nullable and not shape.is_array and shape.tag is None
    return _bytes_walk(
        _length_reader(flexible=flexible, is_short=shape.kafka_type == "string"),
        is_nullable=nullable,
    )


def _item_min_bytes(shape: FieldShape) -> int:
    return _FIXED_BYTES.get(shape.kafka_type or "", 1)


def _length_reader(*, flexible: bool, is_short: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Reads a length or count and the offset after it; −1 is null, anything below is refused."""

    def compact(frame: bytes, offset: int) -> tuple[int, int]:
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


def _bytes_walk(read_length: Callable[[bytes, int], tuple[int, int]], *, is_nullable: bool) -> Walk:
    def walk(frame: bytes, offset: int) -> int:
        length, offset = read_length(frame, offset)
        if length < 0:
            if not is_nullable:
                raise ProtocolError("null where a string or bytes must be")
            return offset
        return _within(frame, offset + length)

    return walk


def _array_walk(item: Walk, item_min_bytes: int, shape: FieldShape, flexible: bool) -> Walk:
    read_count = _length_reader(flexible=flexible, is_short=False)
    is_fixed = shape.entity is None and shape.kafka_type in _FIXED_BYTES

    def walk(frame: bytes, offset: int) -> int:
        count, offset = read_count(frame, offset)
        if count < 0:
            if not shape.is_nullable:
                raise ProtocolError(f"null where the array {shape.name} must be")
            return offset
        if count * item_min_bytes > len(frame) - offset:
            raise ProtocolError(f"the array {shape.name} claims {count} items")
        if is_fixed:
            return offset + count * item_min_bytes
        for _ in range(count):
            offset = item(frame, offset)
        return offset

    return walk


def _nullable_walk(walk_entity: Walk) -> Walk:
    """A struct behind a marker byte: −1 null, 1 present (KIP-893)."""

    def walk(frame: bytes, offset: int) -> int:
        end = _within(frame, offset + 1)
        return end if frame[offset] == 0xFF else walk_entity(frame, end)

    return walk


def _tagged_walk(tagged: dict[int, Walk]) -> Walk:
    def walk(frame: bytes, offset: int) -> int:
        count, offset = read_unsigned_varint(frame, offset)
        for _ in range(count):
            tag, offset = read_unsigned_varint(frame, offset)
            size, offset = read_unsigned_varint(frame, offset)
            if tag not in tagged:
                raise ProtocolError(f"unknown tagged field {tag}")
            if tagged[tag](frame, offset) != offset + size:
                raise ProtocolError(f"tagged field {tag} is not {size} bytes long")
            offset += size
        return offset

    return walk

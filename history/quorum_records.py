"""The records of a KRaft metadata log that say who is registered, who leads what, and how topics are configured.

The table has the fields of these records in the versions of Kafka 4.1, after the message schemas that the releases
publish (``common/metadata/*.json`` in ``kafka-metadata``). Records of other kinds (ACLs, quotas, producer ids and so
on) are passed over. All versions of these records are flexible: lengths are unsigned varints, plus one, and tagged
fields stand at the end. A tag that the table does not have is skipped, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

FRAME_VERSION: Final = 1
_I16, _U16, _I32, _I64 = Struct(">h"), Struct(">H"), Struct(">i"), Struct(">q")


class Reader:
    """A position in the bytes of a message; raises ValueError where they end too early."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self._data):
            raise ValueError(f"{size} bytes are missing at byte {self.position}")
        taken, self.position = self._data[self.position : end], end
        return taken

    def varint(self) -> int:
        """Return an unsigned varint."""
        value, shift = 0, 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError(f"a number is too long at byte {self.position}")

    def zigzag(self) -> int:
        """Return a signed varint, as records have them."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def number(self, form: Struct) -> int:
        (value,) = form.unpack(self.take(form.size))
        return int(value)


Read = Callable[[Reader], Any]


class Field(NamedTuple):
    """A field of a record, from a version of the record on. One with a ``tag`` stands among the tagged fields."""

    name: str
    read: Read
    since: int = 0
    tag: int | None = None
    default: Any = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a kind of record, up to its newest known version."""

    name: str
    newest: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record, by the name of its schema."""

    name: str
    values: Mapping[str, Any]


def _i8(reader: Reader) -> int:
    (byte,) = reader.take(1)
    return byte - 256 if byte > 127 else byte


def _bool(reader: Reader) -> bool:
    return reader.take(1) != b"\0"


def _i16(reader: Reader) -> int:
    return reader.number(_I16)


def _u16(reader: Reader) -> int:
    return reader.number(_U16)


def _i32(reader: Reader) -> int:
    return reader.number(_I32)


def _i64(reader: Reader) -> int:
    return reader.number(_I64)


def _uuid(reader: Reader) -> UUID:
    return UUID(bytes=reader.take(16))


def _string(reader: Reader) -> str | None:
    size = reader.varint()
    return None if size == 0 else reader.take(size - 1).decode()


def _list_of(read: Read) -> Read:
    def read_list(reader: Reader) -> list[Any] | None:
        count = reader.varint()
        return None if count == 0 else [read(reader) for _ in range(count - 1)]

    return read_list


def _struct_of(*fields: Field) -> Read:
    """Return what reads a struct within a record."""

    def read_struct(reader: Reader) -> dict[str, Any]:
        values = {field.name: field.read(reader) for field in fields}
        _tagged(reader, {})
        return values

    return read_struct


_ENDPOINT: Final = _struct_of(
    Field("Name", _string),
    Field("Host", _string),
    Field("Port", _u16),
    Field("SecurityProtocol", _i16),
)
_FEATURE: Final = _struct_of(
    Field("Name", _string), Field("MinSupportedVersion", _i16), Field("MaxSupportedVersion", _i16)
)
_BROKERS: Final = _list_of(_i32)

REGISTER_BROKER: Final = "RegisterBrokerRecord"
UNREGISTER_BROKER: Final = "UnregisterBrokerRecord"
TOPIC: Final = "TopicRecord"
PARTITION: Final = "PartitionRecord"
CONFIG: Final = "ConfigRecord"
PARTITION_CHANGE: Final = "PartitionChangeRecord"
FENCE_BROKER: Final = "FenceBrokerRecord"
UNFENCE_BROKER: Final = "UnfenceBrokerRecord"
REMOVE_TOPIC: Final = "RemoveTopicRecord"
REGISTRATION_CHANGE: Final = "BrokerRegistrationChangeRecord"
BEGIN_TRANSACTION: Final = "BeginTransactionRecord"
END_TRANSACTION: Final = "EndTransactionRecord"
ABORT_TRANSACTION: Final = "AbortTransactionRecord"
CLEAR_ELR: Final = "ClearElrRecord"

SCHEMAS: Final[Mapping[int, Schema]] = MappingProxyType(
    {
        0: Schema(
            REGISTER_BROKER,
            3,
            (
                Field("BrokerId", _i32),
                Field("IsMigratingZkBroker", _bool, since=2, default=False),
                Field("IncarnationId", _uuid),
                Field("BrokerEpoch", _i64),
                Field("EndPoints", _list_of(_ENDPOINT)),
                Field("Features", _list_of(_FEATURE)),
                Field("Rack", _string),
                Field("Fenced", _bool),
                Field("InControlledShutdown", _bool, since=1, default=False),
            ),
        ),
        1: Schema(UNREGISTER_BROKER, 0, (Field("BrokerId", _i32), Field("BrokerEpoch", _i64))),
        2: Schema(TOPIC, 0, (Field("Name", _string), Field("TopicId", _uuid))),
        3: Schema(
            PARTITION,
            2,
            (
                Field("PartitionId", _i32),
                Field("TopicId", _uuid),
                Field("Replicas", _BROKERS),
                Field("Isr", _BROKERS),
                Field("RemovingReplicas", _BROKERS),
                Field("AddingReplicas", _BROKERS),
                Field("Leader", _i32),
                Field("LeaderEpoch", _i32),
                Field("PartitionEpoch", _i32),
                Field("Directories", _list_of(_uuid), since=1),
                Field("LeaderRecoveryState", _i8, tag=0, default=0),
                Field("EligibleLeaderReplicas", _BROKERS, tag=1),
                Field("LastKnownElr", _BROKERS, tag=2),
            ),
        ),
        4: Schema(
            CONFIG,
            0,
            (
                Field("ResourceType", _i8),
                Field("ResourceName", _string),
                Field("Name", _string),
                Field("Value", _string),
            ),
        ),
        5: Schema(
            PARTITION_CHANGE,
            2,
            (
                Field("PartitionId", _i32),
                Field("TopicId", _uuid),
                Field("Isr", _BROKERS, tag=0),
                Field("Leader", _i32, tag=1, default=-2),
                Field("Replicas", _BROKERS, tag=2),
                Field("RemovingReplicas", _BROKERS, tag=3),
                Field("AddingReplicas", _BROKERS, tag=4),
                Field("LeaderRecoveryState", _i8, tag=5, default=-1),
                Field("EligibleLeaderReplicas", _BROKERS, tag=6),
                Field("LastKnownElr", _BROKERS, tag=7),
            ),
        ),
        7: Schema(FENCE_BROKER, 0, (Field("Id", _i32), Field("Epoch", _i64))),
        8: Schema(UNFENCE_BROKER, 0, (Field("Id", _i32), Field("Epoch", _i64))),
        9: Schema(REMOVE_TOPIC, 0, (Field("TopicId", _uuid),)),
        17: Schema(
            REGISTRATION_CHANGE,
            2,
            (
                Field("BrokerId", _i32),
                Field("BrokerEpoch", _i64),
                Field("Fenced", _i8, tag=0, default=0),
                Field("InControlledShutdown", _i8, since=1, tag=1, default=0),
            ),
        ),
        23: Schema(BEGIN_TRANSACTION, 0, ()),
        24: Schema(END_TRANSACTION, 0, ()),
        25: Schema(ABORT_TRANSACTION, 0, ()),
        28: Schema(CLEAR_ELR, 0, (Field("TopicName", _string),)),
    }
)
"""The known records by their API key."""


def decode(value: bytes) -> MetadataRecord | None:
    """Return the record that the value of a record of the log holds; None for a kind that is passed over.

    Raises ValueError for bytes that are not such a record, or for a version that the table does not know.
    """
    reader = Reader(value)
    frame, key, version = reader.varint(), reader.varint(), reader.varint()
    if frame != FRAME_VERSION:
        raise ValueError(f"expected a frame of version {FRAME_VERSION}, got {frame}")
    schema = SCHEMAS.get(key)
    if schema is None:
        return None
    if version > schema.newest:
        raise ValueError(f"{schema.name}: expected version {schema.newest} or less, got {version}")
    present = [field for field in schema.fields if field.since <= version]
    values = {field.name: field.default for field in schema.fields}
    values |= {field.name: field.read(reader) for field in present if field.tag is None}
    tags = {field.tag: field for field in present if field.tag is not None}
    return MetadataRecord(schema.name, values | _tagged(reader, tags))


def _tagged(reader: Reader, tags: Mapping[int, Field]) -> dict[str, Any]:
    """Return the tagged fields of the table; the others are skipped."""
    values: dict[str, Any] = {}
    for _ in range(reader.varint()):
        tag, data = reader.varint(), reader.take(reader.varint())
        if tag in tags:
            values[tags[tag].name] = tags[tag].read(Reader(data))
    return values

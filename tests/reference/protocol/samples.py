"""One message of every kind and version that a broker accepts."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.schema import (
    FieldShape,
    field_shapes,
)
from nemesis.reference.protocol.versions import OFFERED

EVERY_VERSION = [
    (key, version)
    for key, versions in OFFERED.items()
    for version in range(versions.lowest, versions.highest + 1)
]


def sample_value(shape: FieldShape) -> Any:
    """Some value that the field may hold."""
    item: Any
    if shape.entity is not None:
        item = sample(shape.entity)
    else:
        item = {
            "bool": True,
            "string": "t",
            "bytes": b"b",
            "records": b"records",
            "error_code": ErrorCode.none,
            "timedelta_i32": datetime.timedelta(milliseconds=7),
            "timedelta_i64": datetime.timedelta(milliseconds=2**40),
            "datetime_i64": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
            "uuid": uuid.UUID(int=7),
        }.get(shape.kafka_type or "", 3)
    return (item, item) if shape.is_array else item


def sample(entity: type[Any]) -> Any:
    return entity(**{shape.name: sample_value(shape) for shape in field_shapes(entity)})

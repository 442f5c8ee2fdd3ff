"""Reading kio's generated schemas: the shape of a field, and building an entity of any version.

kio has one frozen dataclass per message, struct and version. The fields carry their Kafka type as metadata; what a
version does not have is simply not a field of its class. ``build`` therefore drops values that the version cannot
say, which is what Kafka's own generated code does with *ignorable* fields; callers pass the non-ignorable ones only
where the version has them.

Entities are made at less than half the cost of calling their class. A frozen dataclass sets each field through
``object.__setattr__``; its twin of the same slots is not frozen, and becomes an entity when it is complete.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_origin

from kio.index import load_response_from_request
from kio.static.protocol import RequestPayload

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "error_code": "h",
    "int32": "i",
    "uint32": "I",
    "timedelta_i32": "i",
    "int64": "q",
    "uint64": "Q",
    "float64": "d",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}
"""Kafka's primitive types of fixed size, as ``struct`` writes them."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def cached(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """``functools.cache`` that keeps the signature: mypy does not count a class among the hashables."""
    return cast("Callable[_Arguments, _Result]", cache(function))


@dataclass(frozen=True, slots=True)
class FieldShape:
    """How one field lies on the wire."""

    name: str
    kafka_type: str | None
    """Kafka's primitive type; None when the items are structs."""
    entity: type[Any] | None
    is_array: bool
    is_nullable: bool
    tag: int | None


@cached
def field_shapes(entity: type[Any]) -> tuple[FieldShape, ...]:
    """The fields of a kio entity, in wire order (tagged ones among them)."""
    return tuple(_shape(field) for field in dataclasses.fields(entity))


def _shape(field: dataclasses.Field[Any]) -> FieldShape:
    annotation: Any = field.type
    nullable = NoneType in get_args(annotation)
    if nullable and get_origin(annotation) is not tuple:
        annotation = next(arg for arg in get_args(annotation) if arg is not NoneType)
    is_array = get_origin(annotation) is tuple
    item: Any = get_args(annotation)[0] if is_array else annotation
    is_entity = isinstance(item, type) and dataclasses.is_dataclass(item)
    return FieldShape(
        name=field.name,
        kafka_type=None if is_entity else field.metadata["kafka_type"],
        entity=item if is_entity else None,
        is_array=is_array,
        is_nullable=nullable,
        tag=field.metadata.get("tag"),
    )


@cached
def untagged_shapes(entity: type[Any]) -> tuple[FieldShape, ...]:
    """Those that are always on the wire, in its order."""
    return tuple(shape for shape in field_shapes(entity) if shape.tag is None)


@cached
def tagged_shapes(entity: type[Any]) -> tuple[FieldShape, ...]:
    """Those that may be left out, by their tags."""
    tagged = [shape for shape in field_shapes(entity) if shape.tag is not None]
    return tuple(sorted(tagged, key=lambda shape: shape.tag or 0))


@cached
def field_names(entity: type[Any]) -> frozenset[str]:
    return frozenset(shape.name for shape in field_shapes(entity))


@cached
def field_defaults(entity: type[Any]) -> dict[str, Any]:
    """Of the fields that have one; all tagged fields of what a broker offers do."""
    fields = dataclasses.fields(entity)
    return {
        field.name: field.default for field in fields if field.default is not dataclasses.MISSING
    }


def has_compact_lengths(entity: type[Any], shape: FieldShape) -> bool:
    """Whether lengths are varints. A request header keeps the old format for its client id in every version."""
    is_client_id = entity.__name__ == "RequestHeader" and shape.name == "client_id"
    return bool(entity.__flexible__) and not is_client_id


@cached
def item_class(entity: type[Any], field: str) -> type[Any]:
    """The class of a struct field, or of the items of an array of structs; LookupError if it is not one."""
    for shape in field_shapes(entity):
        if shape.name == field and shape.entity is not None:
            return shape.entity
    raise LookupError(f"{entity.__module__}.{entity.__name__} has no structs named {field}")


@cached
def maker(entity: type[Any]) -> Callable[[dict[str, Any]], Any]:
    """A function that makes instances of ``entity`` from its fields; raises TypeError as the class itself does."""
    twin = _twin(entity)

    def make(values: dict[str, Any]) -> Any:
        made = twin(**values)
        made.__class__ = entity
        return made

    return make


@cached
def builder(entity: type[Any]) -> Callable[[dict[str, Any]], Any]:
    """A function that makes instances of ``entity`` from those values that its version has."""
    twin, names = _twin(entity), field_names(entity)

    def build_one(values: dict[str, Any]) -> Any:
        if not values.keys() <= names:
            values = {name: value for name, value in values.items() if name in names}
        made = twin(**values)
        made.__class__ = entity
        return made

    return build_one


@cached
def assembler(entity: type[Any]) -> Callable[[list[Any]], Any]:
    """A function that makes an instance of ``entity`` from the values of all its fields, tagged ones last."""
    names = [shape.name for shape in (*untagged_shapes(entity), *tagged_shapes(entity))]
    twin: Any = dataclasses.make_dataclass(
        entity.__name__, [(name, Any) for name in names], slots=True, eq=False, repr=False
    )

    def assemble(values: list[Any]) -> Any:
        made = twin(*values)
        made.__class__ = entity
        return made

    return assemble


@cached
def _twin(entity: type[Any]) -> Callable[..., Any]:
    """A class with the same fields, slots and defaults, and nothing else."""
    return dataclasses.make_dataclass(
        entity.__name__,
        [(field.name, Any, _field_like(field)) for field in dataclasses.fields(entity)],
        slots=True,
        kw_only=True,
        eq=False,
        repr=False,
    )


def _field_like(field: dataclasses.Field[Any]) -> Any:
    has_default = field.default is not dataclasses.MISSING
    return dataclasses.field(default=field.default) if has_default else dataclasses.field()


def build(entity: type[Any], **values: Any) -> Any:
    """An instance of ``entity`` from those values that its version has."""
    return builder(entity)(values)


def build_items(entity: type[Any], field: str, items: Iterable[dict[str, Any]]) -> tuple[Any, ...]:
    """Instances for an array field of structs, one from each dictionary of values."""
    return tuple(map(builder(item_class(entity, field)), items))


@cached
def response_class(request: type[RequestPayload]) -> type[Any]:
    """The response that answers a request class, of the same version."""
    return load_response_from_request(request)

"""Reading kio's generated schemas: the shape of a field, and building an entity of any version.

kio has one frozen dataclass per message, struct and version. The fields carry their Kafka type as metadata; what a
version does not have is simply not a field of its class. ``build`` therefore drops values that the version cannot
say, which is what Kafka's own generated code does with *ignorable* fields; callers pass the non-ignorable ones only
where the version has them.

Entities are made at a third of the cost of calling their class. A frozen dataclass sets each field through
``object.__setattr__``; its twin of the same slots is not frozen, and becomes an entity when it is complete. A function
that does so is compiled for each class.
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
def maker(entity: type[Any]) -> Callable[..., Any]:
    """A function that makes instances of ``entity`` from keywords; raises TypeError as the class itself does."""
    defaults = field_defaults(entity)
    names = [shape.name for shape in field_shapes(entity)]
    arguments = [f"{name}=default_{name}" if name in defaults else name for name in names]
    parameters = ", ".join(["*", *arguments] if arguments else [])
    return _compiled(entity, parameters, [f"made.{name} = {name}" for name in names])


@cached
def builder(entity: type[Any]) -> Callable[[dict[str, Any]], Any]:
    """A function that makes instances of ``entity`` from those values that its version has.

    Raises KeyError when one is missing that has no default.
    """
    defaults = field_defaults(entity)
    values = {
        name: f"values.get('{name}', default_{name})" if name in defaults else f"values['{name}']"
        for name in (shape.name for shape in field_shapes(entity))
    }
    return _compiled(entity, "values", [f"made.{name} = {value}" for name, value in values.items()])


@cached
def assembler(entity: type[Any]) -> Callable[[list[Any]], Any]:
    """A function that makes an instance of ``entity`` from the values of all its fields, tagged ones last."""
    shapes = (*untagged_shapes(entity), *tagged_shapes(entity))
    targets = ", ".join(f"made.{shape.name}" for shape in shapes)
    return _compiled(entity, "values", [f"[{targets}] = values"])


def _compiled(entity: type[Any], parameters: str, assignments: list[str]) -> Callable[..., Any]:
    """A function that has a blank twin ``made``, fills it by the assignments and returns it as an entity."""
    lines = ["made = twin()", *assignments, "made.__class__ = entity", "return made"]
    scope = {f"default_{name}": value for name, value in field_defaults(entity).items()}
    scope |= {"entity": entity, "twin": _twin(entity)}
    # What dataclasses do. The text holds nothing but the names of kio's fields.
    exec(f"def make({parameters}):\n " + "\n ".join(lines), scope)  # noqa: S102
    make: Callable[..., Any] = scope["make"]
    return make


@cached
def _twin(entity: type[Any]) -> type[Any]:
    """A class with the same slots, and nothing else."""
    return type(entity.__name__, (), {"__slots__": [shape.name for shape in field_shapes(entity)]})


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

"""The schema page: what ``docs/history.md`` says of kinds and columns, made from the declarations.

The docstrings of classes and fields are read from the sources, which every checkout and every wheel has.
``python -m nemesis.history.vocabulary.page docs/history.md`` writes the page; a test compares it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from nemesis.history import events
from nemesis.history.events import Event, Kind, Repeated, Unit, marks, plain
from nemesis.history.sources import EventSource, source_of
from nemesis.history.vocabulary.checking import MODULES
from nemesis.history.vocabulary.declaring import OUR_CLIENTS, Declaration, View, declarations

BEGIN = "<!-- generated: python -m nemesis.history.vocabulary.page docs/history.md -->"
END = "<!-- end of the generated part -->"


def page() -> str:
    """Return the part of ``docs/history.md`` between ``BEGIN`` and ``END``, both included."""
    parts = [BEGIN, "### Columns", "", *_columns(), ""]
    for module in MODULES:
        parts += [f"### {_title(module)}", "", *_text(module.__doc__ or "").split("\n"), ""]
        parts += [_sources(module), "", *_kinds(module), ""]
    return "\n".join([*parts, END])


def replaced(document: str) -> str:
    """Return a document with the text between its marks replaced by the page; raises ValueError without marks."""
    before, after = document.index(BEGIN), document.index(END) + len(END)
    return document[:before] + page() + document[after:]


def _title(module: ModuleType) -> str:
    return {
        "clients": "Operations of our clients",
        "groups": "Members of consumer groups",
        "transactions": "Transactional producers",
        "brokers": "Brokers",
        "controller": "The controller",
        "replication": "Replicas",
        "zookeeper": "ZooKeeper",
        "faults": "Faults",
        "harness": "The harness",
        "foreign": "Operations of other systems",
    }[module.__name__.rpartition(".")[2]]


def _columns() -> Iterator[str]:
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    texts = _field_texts(Event)
    for name, hint in get_type_hints(Event, include_extras=True).items():
        unit = "".join(mark.name for mark in marks(hint) if isinstance(mark, Unit))
        yield f"| `{name}` | {_type_name(hint)} | {unit} | {texts[name]} |"


def _sources(module: ModuleType) -> str:
    """The source of a module's kinds; if there are several, with the kinds of each."""
    kinds: dict[EventSource, dict[str, None]] = {}
    for item in declarations():
        if item.view.__module__ == module.__name__:
            kinds.setdefault(source_of(item.kind), {})[item.kind.value] = None
    if len(kinds) == 1:
        return f"Source: `{next(iter(kinds))}`."
    listed = (
        f"`{source}` of {', '.join(f'`{name}`' for name in names)}"
        for source, names in kinds.items()
    )
    return f"Sources: {'; '.join(listed)}."


def _kinds(module: ModuleType) -> Iterator[str]:
    listed = [item for item in declarations() if item.view.__module__ == module.__name__]
    yield "| event | columns | meaning |"
    yield "|---|---|---|"
    for view, group in groupby(listed, lambda item: item.view):
        names = _event_names([*group])
        if names:
            yield f"| {names} | {_columns_of(view)} | {_meaning(view)} |"


def _event_names(group: list[Declaration]) -> str:
    """The kinds of a view; the ends that have only ``error`` beside the invocation are not named."""
    named = []
    for item in group:
        if item.f is None:
            named.append(f"`{item.kind.value}`")
        elif item.kind in (Kind.INVOKE, Kind.OK):
            where = "" if OUR_CLIENTS in item.workloads else f" ({', '.join(item.workloads)})"
            named.append(f"{item.kind.value} `{item.f}`{where}")
    return ", ".join(dict.fromkeys(named))


def _columns_of(view: type[View]) -> str:
    """The columns of a view, the optional ones in brackets; not those of every event."""
    fields = [
        item for item in msgspec.structs.fields(view) if item.name not in View.__struct_fields__
    ]
    return ", ".join(f"`{item.name}`" if item.required else f"[`{item.name}`]" for item in fields)


def _meaning(view: type[View]) -> str:
    own = _own_field_texts(view)
    notes = " ".join(f"`{name}`: {_lowered(text)}" for name, text in own.items())
    return " ".join(f"{_text(view.__doc__ or '')} {notes}".split())


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:]


def _text(docstring: str) -> str:
    return inspect.cleandoc(docstring).replace("``", "`")


def _field_texts(of: type[Any]) -> Mapping[str, str]:
    return _texts(inspect.getmodule(of) or events)[of.__name__]


def _own_field_texts(view: type[View]) -> Mapping[str, str]:
    """What a view and the views that it extends say of their fields, the base's first."""
    texts: dict[str, str] = {}
    for base in reversed(view.__mro__[: view.__mro__.index(View)]):
        texts |= _field_texts(base)
    return texts


@cache
def _texts(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """By class, the docstring under each of its fields."""
    fields_by_class: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            fields = fields_by_class.setdefault(node.name, {})
            for field, text in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    fields[field.target.id] = " ".join(_text(str(text.value.value)).split())
    return fields_by_class


def _type_name(hint: Any) -> str:
    kind = plain(hint)
    if get_origin(kind) is list:
        return f"list of {_type_name(get_args(kind)[0])}"
    words = any(isinstance(mark, Repeated) for mark in marks(hint))
    return {int: "int64", bool: "bool", str: "string, dictionary-coded" if words else "string"}[
        kind
    ]


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(replaced(document.read_text(encoding="utf-8")), encoding="utf-8")

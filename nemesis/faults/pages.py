"""The tables of ``docs/faults.md`` that are generated from the faults, the recipes and the runtimes.

``python -m nemesis.faults.pages`` writes them; a test compares them with what the faults state. Read the difference
before you commit it. A table stands between two comment lines with its name; the rest of the page is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import inspect

from nemesis.faults import FAULTS
from nemesis.faults.availability import obstacles
from nemesis.faults.recipes import RECIPES
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.kinds import RUNTIMES

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
SELECTOR: Final = "target"
"""How plan files name the field ``selector`` of a fault."""


class PlanField(NamedTuple):
    """A field of a fault as plan files name it, with what it allows, as text."""

    name: str
    meaning: str
    values: str
    default: str


def faults_table() -> str:
    """Return what each fault does, what proves it, and the parts that it needs."""
    return _table(
        ("fault", "what it does", "effect", "heal", "parts"),
        (
            (
                f"`{name}`",
                kind.summary,
                kind.effect,
                kind.heal,
                ", ".join(f"`{part.__name__}`" for part in sorted(kind.needs, key=_name)),
            )
            for name, kind in FAULTS.items()
        ),
    )


def runtimes_table() -> str:
    """Return which runtime can do which fault, and why not."""
    return _table(
        ("fault", *(f"`{runtime}`" for runtime in RUNTIMES)),
        (
            (f"`{name}`", *(_ability(obstacle) for obstacle in obstacles(kind).values()))
            for name, kind in FAULTS.items()
        ),
    )


def fields_table() -> str:
    """Return the fields of plan files: a row for each meaning, range and default, with the faults that share it."""
    faults: dict[PlanField, list[str]] = {}
    for fault, kind in FAULTS.items():
        for field in inspect.type_info(kind).fields:  # type: ignore[attr-defined]
            faults.setdefault(_plan_field(field), []).append(fault)
    names = list(dict.fromkeys(field.name for field in faults))
    return _table(
        ("field", "meaning", "values", "default", "faults"),
        (
            (f"`{field.name}`", field.meaning, field.values, field.default, _named(faults[field]))
            for field in sorted(faults, key=lambda field: names.index(field.name))
        ),
    )


def recipes_table() -> str:
    """Return what each recipe does, and the kinds of faults that it combines."""
    return _table(
        ("recipe", "what happens", "faults"),
        (
            (f"`{name}`", recipe.summary, _named(name for name in FAULTS if name in recipe.kinds))
            for name, recipe in RECIPES.items()
        ),
    )


TABLES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "faults": faults_table,
        "runtimes": runtimes_table,
        "fields": fields_table,
        "recipes": recipes_table,
    }
)
"""Each generated table by the name in its comment lines."""


def replaced(page: str) -> str:
    """Return the page with all tables generated again; raises ValueError when it lacks the lines around one."""
    for name, table in TABLES.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->\n"
        before, found_begin, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"faults.md: expected the lines {begin.strip()} and {end.strip()}")
        page = before + begin + table() + end + after
    return page


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _ability(obstacle: Unsupported | None) -> str:
    return "yes" if obstacle is None else f"no: {obstacle.reason}"


def _named(faults: Iterable[str]) -> str:
    names = list(faults)
    return "all" if len(names) == len(FAULTS) else ", ".join(f"`{name}`" for name in names)


def _plan_field(field: inspect.Field) -> PlanField:
    described = field.type
    if not isinstance(described, inspect.Metadata):
        raise TypeError(f"{field.name}: expected a type with a description, got {described}")
    meaning = (described.extra_json_schema or {})["description"]
    default = "required" if field.required else _value(field.default)
    return PlanField(
        field.encode_name, meaning, _values(field.encode_name, described.type), default
    )


def _values(name: str, allowed: inspect.Type) -> str:
    """Return the values that a type allows."""
    match allowed:
        case inspect.LiteralType(values):
            return ", ".join(f"`{value}`" for value in values)
        case inspect.BoolType():
            return "`true`, `false`"
        case inspect.IntType() | inspect.FloatType():
            low = f"above {_value(allowed.gt)}" if allowed.ge is None else _value(allowed.ge)
            return f"{low} to {_value(allowed.le)}"
        case inspect.StrType() if name == SELECTOR:
            return "a [selector](#selectors)"
        case _:
            raise TypeError(f"{name}: expected a type with a range, got {allowed}")


def _value(value: object) -> str:
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case float() if not value.is_integer():
            return str(value)
        case int() | float():
            return f"{int(value):,}"
        case _:
            return f"`{value}`"


def _name(part: type) -> str:
    return part.__name__


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text("utf-8")), "utf-8")

"""The ledger ``docs/kafka-ledger.yaml``: read, compared with code, and shown as a table of ``docs/controller.md``.

``python -m tests.docs.ledger`` writes the table. A place in the code is ``FILE::SYMBOL`` (``::METHOD``), as pytest
spells it; files are parsed, never imported. Limit: whether a test is really of that part is for its reader to judge.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import yaml

from nemesis.checkers import CHECKERS

ROOT: Final = Path(__file__).parents[2]
LEDGER: Final = ROOT / "docs" / "kafka-ledger.yaml"
PAGE: Final = ROOT / "docs" / "controller.md"
BEGIN: Final = "<!-- ledger: written by python -m tests.docs.ledger -->\n"
END: Final = "<!-- end of ledger -->\n"

CONTROLLER_SEEDS: Final = frozenset({0, 3})
"""The seeds that describe the controller."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One name of a seed, and where it is; the head of the ledger describes the fields."""

    name: str
    seeds: tuple[int, ...]
    kafka: str | None = None
    module: str | None = None
    test: str | None = None
    property: str | None = None
    planned: str | None = None


class Ledger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of ``docs/kafka-ledger.yaml``."""

    seeds: dict[int, str]
    themes: dict[str, str]
    named: dict[int, str]
    classes: tuple[Entry, ...]
    listeners: tuple[Entry, ...]
    znodes: tuple[Entry, ...]
    requests: tuple[Entry, ...]
    tasks: tuple[Entry, ...]
    constants: tuple[Entry, ...]
    methods: tuple[Entry, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order of the file."""
        return (*self.components, *self.constants, *self.methods)

    @property
    def components(self) -> tuple[Entry, ...]:
        """What a table of components shows: all but constants and methods."""
        return (*self.classes, *self.listeners, *self.znodes, *self.requests, *self.tasks)


def read(text: str) -> Ledger:
    """Return the ledger; raises ``msgspec.ValidationError`` for what does not fit the schema."""
    return msgspec.convert(yaml.safe_load(text), Ledger)


def problems(ledger: Ledger) -> list[str]:
    """Return one sentence for each thing that the ledger says and that is not so."""
    return [
        *_problems_of_names(ledger),
        *(problem for entry in ledger.entries for problem in _problems_of_entry(ledger, entry)),
    ]


def _problems_of_names(ledger: Ledger) -> Iterator[str]:
    counts = Counter(entry.name for entry in ledger.entries)
    yield from (f"{name} has {count} entries" for name, count in counts.items() if count > 1)
    themes = ledger.themes.keys() - {entry.planned for entry in ledger.entries}
    yield from (f"nothing is planned under {theme}" for theme in sorted(themes))
    yield from (f"named: there is no seed {seed}" for seed in ledger.named.keys() - ledger.seeds)
    for seed in ledger.seeds:
        names = ledger.named.get(seed, "").split()
        entered = {entry.name for entry in ledger.entries if seed in entry.seeds}
        yield from (f"seed {seed} names {name}: no entry" for name in names if name not in entered)
        unnamed = sorted(entered.difference(names))
        yield from (f"{name} is not among the names of seed {seed}" for name in unnamed)


def _problems_of_entry(ledger: Ledger, entry: Entry) -> Iterator[str]:
    name = entry.name
    if not entry.seeds:
        yield f"{name} is from no seed"
    yield from (f"{name}: no seed {seed}" for seed in entry.seeds if seed not in ledger.seeds)
    if entry.planned is None:
        yield from _problems_of_place(entry)
        return
    if entry.module or entry.test or entry.property:
        yield f"{name} is planned and has a place already"
    if entry.planned not in ledger.themes:
        yield f"{name} is planned under {entry.planned!r}, which is no theme"
    if {name, entry.kafka} & _built():
        yield f"{name} is planned, but the code has it: say where"


def _problems_of_place(entry: Entry) -> Iterator[str]:
    if entry.module is None or entry.test is None:
        yield f"{entry.name} needs module and test, or planned"
        return
    if not _exists(entry.module):
        yield f"{entry.name}: there is no {entry.module}"
    if not entry.test.startswith("tests/") or not _is_test(entry.test) or not _exists(entry.test):
        yield f"{entry.name}: there is no test {entry.test}"
    if entry.property is not None and entry.property not in CHECKERS:
        yield f"{entry.name}: there is no property {entry.property!r}"


def _is_test(place: str) -> bool:
    return place.rpartition("::")[2].startswith("test_")


def _exists(place: str) -> bool:
    path, found, symbol = place.partition("::")
    file = ROOT / path
    return bool(found) and file.is_file() and symbol in _symbols(file)


@cache
def _symbols(file: Path) -> frozenset[str]:
    return frozenset(_defined(ast.parse(file.read_text("utf-8")).body))


def _defined(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield what a module or class body defines, methods and fields with their class."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _defined(node.body, f"{prefix}{name}::")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


@cache
def _built() -> frozenset[str]:
    """Return the names in the reference that would belie a plan: classes, APIs that are offered, scheduled tasks."""
    files = sorted((ROOT / "reference").rglob("*.py"))
    return frozenset(
        name for file in files for name in _built_in(ast.parse(file.read_text("utf-8")))
    )


def _built_in(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.ClassDef(name="ApiKey"):
                yield from _defined(node.body)
            case ast.ClassDef(name=name):
                yield name
            case ast.Call(
                func=ast.Attribute(attr="schedule"), args=[ast.Constant(value=str(name)), *_]
            ):
                yield name


def render(ledger: Ledger) -> str:
    """Return the table of the controller's components as Markdown."""
    rows = [["seed", "module", "test", "property"], ["---"] * 4]
    rows += [_row(entry) for entry in ledger.components if CONTROLLER_SEEDS & {*entry.seeds}]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(entry: Entry) -> list[str]:
    name = f"`{entry.name}`" + (f", now `{entry.kafka}`" if entry.kafka else "")
    if entry.module is None or entry.test is None:
        return [name, f"planned: {entry.planned}", "planned", "planned"]
    judge = "its test alone" if entry.property is None else f"`{entry.property}`"
    return [name, _link(entry.module), _link(entry.test), judge]


def _link(place: str) -> str:
    path, _, symbol = place.partition("::")
    return f"[`{symbol.replace('::', '.')}`](../{path})"


def committed() -> str:
    """Return the table that is in the docs."""
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def write() -> None:
    """Put the table into the docs; raises ValueError when they have no place for it."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the line {(END if begin else BEGIN).strip()}")
    table = render(read(LEDGER.read_text("utf-8")))
    PAGE.write_text(before + begin + table + end + after, "utf-8")


if __name__ == "__main__":
    write()

"""The Kafka ledger ``docs/kafka-ledger.yaml``: compared with the code, shown as a table of ``docs/controller.md``.

``python -m tests.docs.ledger`` writes the table. A place in the code is ``FILE::SYMBOL`` (``::METHOD``), as pytest
spells it; files are parsed, never imported. Limit: that a cited test runs the cited place is checked by
``tests/docs/test_ledger_is_exercised.py`` every night; whether it is a good test is for its reader to judge.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec
import yaml

from nemesis.checkers import CHECKERS

ROOT: Final = Path(__file__).parents[2]
LEDGER: Final = ROOT / "docs" / "kafka-ledger.yaml"
PAGE: Final = ROOT / "docs" / "controller.md"
BEGIN: Final = "<!-- ledger: written by python -m tests.docs.ledger -->\n"
END: Final = "<!-- end of ledger -->\n"

CONTROLLER_DOCUMENTS: Final = frozenset({0, 3})
"""The source documents that describe the controller."""

CODEC_TESTS: Final = (
    "tests/reference/protocol/",
    "tests/reference/server/test_messages_by_reference.py",
)
"""Tests of encoding and decoding: they show nothing about a handler."""

Status = Literal["built", "stub", "replaced", "not built"]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One name of a source document, and what became of it; the head of the ledger describes the fields."""

    name: str
    documents: tuple[int, ...]
    status: Status
    also: tuple[str, ...] = ()
    kafka: str | None = None
    where: str | None = None
    test: str | None = None
    property: str | None = None
    theme: str | None = None
    note: str | None = None


class Ledger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of ``docs/kafka-ledger.yaml``."""

    documents: dict[int, str]
    themes: dict[str, str]
    named: dict[int, str]
    left_out: dict[str, str]
    classes: tuple[Entry, ...] = ()
    listeners: tuple[Entry, ...] = ()
    znodes: tuple[Entry, ...] = ()
    topics: tuple[Entry, ...] = ()
    requests: tuple[Entry, ...] = ()
    tasks: tuple[Entry, ...] = ()
    settings: tuple[Entry, ...] = ()
    methods: tuple[Entry, ...] = ()
    fields: tuple[Entry, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order of the file."""
        return (*self.components, *self.settings, *self.methods, *self.fields)

    @property
    def components(self) -> tuple[Entry, ...]:
        """The entries that a table of components shows: no settings, methods or fields."""
        return (
            *self.classes,
            *self.listeners,
            *self.znodes,
            *self.topics,
            *self.requests,
            *self.tasks,
        )

    @property
    def words_left_out(self) -> frozenset[str]:
        """The extracted words that get no entry."""
        return frozenset(word for words in self.left_out.values() for word in words.split())


def read(text: str) -> Ledger:
    """Return the ledger; raises ``msgspec.ValidationError`` for text that does not fit the schema."""
    return msgspec.convert(yaml.safe_load(text), Ledger)


def problems(ledger: Ledger) -> list[str]:
    """Return one sentence for each statement of the ledger that is false."""
    return [
        *_problems_of_names(ledger),
        *(problem for entry in ledger.entries for problem in _problems_of_entry(ledger, entry)),
    ]


def spellings(entry: Entry) -> frozenset[str]:
    """Return the words by which a document names the entry: its member alone, and variables called like it."""
    words = {entry.name, entry.name.rpartition(".")[2], *entry.also}
    return frozenset(words | {word[:1].lower() + word[1:] for word in words})


def covered(ledger: Ledger, document: int) -> frozenset[str]:
    """Return the words of a document that have an entry, or a reason to have none."""
    entries = [entry for entry in ledger.entries if document in entry.documents]
    words = {word for entry in entries for word in spellings(entry)}
    for entry in entries:
        owner = entry.name.partition(".")[0]
        words |= {owner, owner[:1].lower() + owner[1:]}
    return frozenset(words | ledger.words_left_out)


def _problems_of_names(ledger: Ledger) -> Iterator[str]:
    counts = Counter(entry.name for entry in ledger.entries)
    yield from (f"{name} has {count} entries" for name, count in counts.items() if count > 1)
    unused = ledger.themes.keys() - {entry.theme for entry in ledger.entries}
    yield from (f"no entry has the theme {theme}" for theme in sorted(unused))
    yield from (f"named: no document {number}" for number in ledger.named.keys() - ledger.documents)
    all_words: set[str] = set()
    for number in ledger.documents:
        words = set(ledger.named.get(number, "").split())
        all_words |= words
        missing = words - covered(ledger, number)
        yield from (f"document {number} names {word}: no entry" for word in sorted(missing))
        for entry in ledger.entries:
            if number in entry.documents and not words & spellings(entry):
                yield f"{entry.name} is not among the names of document {number}"
    for word in sorted(ledger.words_left_out - all_words):
        yield f"{word} is left out, but no document names it"


def _problems_of_entry(ledger: Ledger, entry: Entry) -> Iterator[str]:
    name = entry.name
    if not entry.documents:
        yield f"{name} is from no document"
    yield from (f"{name}: no document {d}" for d in entry.documents if d not in ledger.documents)
    if entry.status in ("stub", "replaced") and entry.note is None:
        yield f"{name} is {entry.status}: a note must say how"
    if entry.status != "not built":
        yield from _problems_of_location(ledger, entry)
        return
    if entry.where or entry.test or entry.property:
        yield f"{name} is not built and has a place"
    if entry.theme not in ledger.themes:
        yield f"{name} is not built, and {entry.theme!r} is not a theme"
    if {name, entry.kafka} & _built():
        yield f"{name} is not built, but the code has it: say where"


def _problems_of_location(ledger: Ledger, entry: Entry) -> Iterator[str]:
    if entry.where is None or entry.test is None:
        yield f"{entry.name} is {entry.status}: it needs where and test"
        return
    if entry.theme is not None:
        yield f"{entry.name} is {entry.status} and has a theme"
    if not _exists(entry.where):
        yield f"{entry.name}: {entry.where} does not exist"
    if not entry.test.startswith("tests/") or not _is_test(entry.test) or not _exists(entry.test):
        yield f"{entry.name}: the test {entry.test} does not exist"
    is_handler = entry in ledger.requests or "/server/apis/" in entry.where
    if is_handler and entry.test.startswith(CODEC_TESTS):
        yield f"{entry.name}: {entry.test} tests the codec, not the handler"
    if entry.property is not None and entry.property not in CHECKERS:
        yield f"{entry.name}: there is no property {entry.property!r}"


def _is_test(location: str) -> bool:
    return location.rpartition("::")[2].startswith("test_")


def _exists(location: str) -> bool:
    path, separator, symbol = location.partition("::")
    file = ROOT / path
    return bool(separator) and file.is_file() and symbol in _symbols(file)


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
    """Return the names in the reference that contradict "not built": classes, offered APIs, scheduled tasks."""
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
    rows = [["name in the documents", "status", "where", "test", "property"], ["---"] * 5]
    rows += [
        _row(entry) for entry in ledger.components if CONTROLLER_DOCUMENTS & {*entry.documents}
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(entry: Entry) -> list[str]:
    name = f"`{entry.name}`" + (f", now `{entry.kafka}`" if entry.kafka else "")
    if entry.where is None or entry.test is None:
        return [name, f"not built: {entry.theme}", "–", "–", "–"]
    judge = "its test alone" if entry.property is None else f"`{entry.property}`"
    return [name, entry.status, _link(entry.where), _link(entry.test), judge]


def _link(location: str) -> str:
    path, _, symbol = location.partition("::")
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

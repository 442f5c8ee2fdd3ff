"""Banned words in identifiers and texts: where they stand, and what to write instead.

``python -m tests.tidy.words`` writes ``word_ratchet.yaml`` again, after words have gone or a file has moved.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.tidy.sources import HELPERS, PACKAGES, ROOT, parsed, python_files, relative

DIRECTORY = Path(__file__).parent
RATCHET = DIRECTORY / "word_ratchet.yaml"
HEADER = """\
# How many banned words each file still has: in identifiers, then in texts. A number may only fall; a file without an
# entry has none. Write it again with: python -m tests.tidy.words
"""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Hit(NamedTuple):
    line: int
    text: str
    instead: str


@cache
def banned() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = yaml.safe_load(
        (DIRECTORY / "banned_words.yaml").read_text("utf-8")
    )
    return words


@cache
def instead_of(name: str) -> str | None:
    """The replacement of a banned identifier; None of an identifier that is allowed."""
    whole_name = name.strip("_").lower()
    if whole_name in banned()["identifiers"]:
        return banned()["identifiers"][whole_name]
    words = (word.lower() for word in WORD.findall(name))
    return next(
        (banned()["identifier_words"][w] for w in words if w in banned()["identifier_words"]), None
    )


def names_defined(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each class, function, parameter, variable and attribute; names of tests are sentences."""
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("test_"):
                    yield node.lineno, name
            case ast.ClassDef(name=name) if not name.startswith("Test"):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield node.lineno, name


def in_identifiers(path: Path) -> list[Hit]:
    names = [(1, path.stem), *names_defined(parsed(path))] if path.suffix == ".py" else []
    if path.stem.startswith("test_"):
        del names[:1]
    return [
        Hit(line, name, instead)
        for line, name in names
        if (instead := instead_of(name)) is not None
    ]


@cache
def any_phrase() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in banned()["texts"]), re.IGNORECASE)


def in_texts(path: Path) -> list[Hit]:
    hits = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        for match in any_phrase().finditer(line):
            phrase = match[0]
            instead = next(
                instead
                for pattern, instead in banned()["texts"].items()
                if re.compile(pattern, re.IGNORECASE).match(line, match.start())
            )
            hits.append(Hit(number, phrase, instead))
    return hits


def files() -> Iterator[Path]:
    yield from python_files(*PACKAGES, *HELPERS)
    yield from sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@cache
def hits() -> dict[str, tuple[list[Hit], list[Hit]]]:
    """For each file that has any, the hits in identifiers and in texts."""
    by_file = {relative(path): (in_identifiers(path), in_texts(path)) for path in files()}
    return {name: both for name, both in by_file.items() if any(both)}


def write_ratchet() -> None:
    lines = [
        f"{name}: [{len(names)}, {len(texts)}]\n" for name, (names, texts) in sorted(hits().items())
    ]
    RATCHET.write_text(HEADER + "".join(lines), "utf-8")


if __name__ == "__main__":
    write_ratchet()

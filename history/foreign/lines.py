"""From a file to its operations, in the order of its lines: EDN or JSON, whole or damaged.

A history is a file of maps, one after the other, commonly one per line, or one vector of them. JSON likewise: an
object per line, or one array. A file is JSON if its first map begins with a text, unless a value of EDN follows this.
A map or an object around the vector (``{"history": [...]}``) is left out. A file that is compressed with gzip is read
as the file inside. Jepsen's ``history.txt`` and its logs have an operation per line without braces
(``text_operations``). Of Jepsen's ``test.jepsen`` (``binary_store``) the number of an operation stands for its line.

What cannot be read costs only itself: reading goes on at the next line that begins like an operation. A map may take
several lines; it ends at the latest where another operation begins. Where the file ends inside a map it was cut off
there, which loses nothing but the end.

Limits: a map that is not all in one line has 16 million characters at most. UTF-8; other bytes become "�".
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from nemesis.history.foreign import edn
from nemesis.history.foreign.binary_store import DamagedChunk, is_binary_store, read_forms
from nemesis.history.foreign.edn import MAX_DEPTH, TOO_DEEP, EdnError
from nemesis.history.foreign.operations import NotAnOperation, Operation, operation_of
from nemesis.history.foreign.text_operations import (
    is_text_history,
    may_be_cut_off,
    text_operation,
)
from nemesis.history.foreign.wrappers import HEAD_CHARACTERS, vector_start

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""What one map may take, if it is not all in one line."""
PROBE_CHARACTERS: Final = 4096
NO_LINE_BREAK: Final = "without a line break its value may be cut off"
_BEGINS: Final = re.compile(
    r"[\s,\[(]*(?:#[\w.$]+\s*)?\{\s*[:\"](?:type|process|f|index|time|value|error)\b"
)
"""How an operation begins: with one of its own entries."""
_OPENS: Final = re.compile(r"[\s,]*[\[(](?=\s*(?:$|\{|#))")
"""The bracket of a vector of maps."""
_NOTHING: Final = re.compile(r"[\s,\])]*(?:;.*)?\s*")
"""What may stand between operations."""
_SPACE: Final = re.compile(r"[\s,]*")
_CLOSES: Final = re.compile(r"[\s,]*[\])]")
_TEXT_KEY_OF_EDN: Final = re.compile(
    r"[\s,\[]*\{\s*\"(?:[^\"\\]|\\.)*\"[\s,]*"
    r"(?::(?!(?:true|false|null|NaN|Infinity)\b)[A-Za-z]|[^\s,:])"
)
"""The beginning of a map whose first key is a text, and whose first value JSON does not have, such as a keyword."""
_KEYWORDS: Final = re.compile(r"[\[{,:]\s*\":[A-Za-z]")
"""A keyword that is written as a text in JSON."""
GZIP: Final = b"\x1f\x8b"

Parse = Callable[[str, int], tuple[Any, int]]
"""Returns the value at a position of a text, and where it ends; raises ``EdnError``."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Lines that say no operation."""

    line: int
    reason: str
    is_torn: bool = False
    """Whether the file ends inside it."""


Read = Operation | Unreadable


def read_lines(path: Path) -> Iterator[Read]:
    """Yield what the file says, line by line; raises OSError, ForeignHistoryError."""
    with path.open("rb") as beginning:
        is_store = is_binary_store(beginning.read(PROBE_CHARACTERS))
    if is_store:
        for number, form in read_forms(path):
            is_damaged = isinstance(form, DamagedChunk)
            yield Unreadable(number, form.reason) if is_damaged else _said(form, number)
        return
    with open_text(path) as file:
        probe = file.read(PROBE_CHARACTERS)
        begin = "".join(probe.split()).lstrip("[")
        is_json = begin.startswith('{"') and not _TEXT_KEY_OF_EDN.match(probe)
        parse = parse_json if is_json else edn.parse
        is_map = begin.startswith("{") and not _BEGINS.match(probe)
        head = _head(file, probe) if is_map else ""
        start = vector_start(head, parse, is_json=is_json)
        file.seek(0)
        lines = _Lines(file)
        if is_text_history(probe):
            yield from _text_lines(lines)
            return
        first = None if start is None else _skip_to(start, lines)
        is_wrapped, is_before = first is not None, first is None
        while (text := first if first is not None else lines.take()) is not None:
            first = None
            if is_before and not _NOTHING.fullmatch(text):
                is_before = False
                if opening := _OPENS.match(text):
                    text = text[opening.end() :]
            if (yield from _forms(parse, text, lines, is_wrapped=is_wrapped)):
                return


def says_nothing(text: str) -> bool:
    """Whether a line has no operation: it is empty, or a comment."""
    return _NOTHING.fullmatch(text) is not None


def open_text(path: Path) -> TextIO:
    """Open a file as text, decompressed if it is compressed; raises OSError."""
    with path.open("rb") as file:
        is_compressed = file.read(len(GZIP)) == GZIP
    if is_compressed:
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="\n")
    return path.open(encoding="utf-8-sig", errors="replace", newline="\n")


def _head(file: TextIO, probe: str) -> str:
    """Return the beginning of a file, in which a map around the operations may have other entries first."""
    try:
        return probe + file.read(HEAD_CHARACTERS - len(probe))
    except (EOFError, OSError, zlib.error):
        return probe  # Damaged further on, which reading its lines reports.


def _skip_to(position: int, lines: _Lines) -> str:
    """Take the lines up to a position in the file; return the rest of the last of them."""
    text, start = "", 0
    while start + len(text) <= position and (line := lines.take()) is not None:
        start, text = start + len(text), line
    return text[position - start :]


def _text_lines(lines: _Lines) -> Iterator[Read]:
    while (text := lines.take()) is not None:
        if not _NOTHING.fullmatch(text):
            if lines.peek() is None and may_be_cut_off(text):
                yield Unreadable(lines.number, NO_LINE_BREAK, is_torn=True)
                return
            try:
                yield _said(text_operation(text), lines.number)
            except EdnError as error:
                is_torn = lines.peek() is None and not text.endswith("\n")
                yield Unreadable(lines.number, _short(error), is_torn=is_torn)


def _forms(
    parse: Parse, text: str, lines: _Lines, *, is_wrapped: bool
) -> Generator[Read, None, bool]:
    """The operations that begin in this line, of which the last may need some of the lines that follow.

    Return whether the vector of operations inside a map ends behind them.
    """
    number, position = lines.number, 0
    while not _NOTHING.fullmatch(text, position):
        if is_wrapped and _CLOSES.match(text, position):
            return True
        try:
            form, position = parse(text, position)
        except EdnError as error:
            if str(error) == edn.EMPTY:
                break  # The rest of the line is discarded (``#_``).
            more = _up_to_a_bracket(lines) if error.is_incomplete else ""
            if more and len(text) - position < MAX_CHARACTERS:
                text, position = text[position:] + more, 0
                continue
            is_torn = error.is_incomplete and lines.peek() is None
            yield Unreadable(number, _short(error), is_torn=is_torn)
            return False
        yield _said(form, number)
        number = lines.number
    return is_wrapped and _CLOSES.match(text, position) is not None


def _up_to_a_bracket(lines: _Lines) -> str:
    """Take the lines of a map up to the next that may end it; nothing if an operation begins or the file ends."""
    taken: list[str] = []
    while (more := lines.peek()) is not None and not _BEGINS.match(more):
        taken.append(lines.take() or "")
        if "}" in more:
            break
    return "".join(taken)


def parse_json(text: str, start: int) -> tuple[Any, int]:
    """Return the first JSON value at or after ``start``, and where it ends; raises ``EdnError``."""
    begin = _SPACE.match(text, start)
    position = begin.end() if begin else start
    try:
        value, end = _JSON.raw_decode(text, position)
    except json.JSONDecodeError as error:
        is_incomplete = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        raise EdnError(error.msg, is_incomplete=is_incomplete) from None
    except (ValueError, RecursionError) as error:
        raise EdnError(str(error)) from None
    if _KEYWORDS.search(text, position, end):
        value = _with_keywords(value)
    # The value's own text, for the line may be the whole file.
    opened = text.count("[", position, end) + text.count("{", position, end)
    if opened > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise EdnError(TOO_DEEP)
    return (_printable(value) if _SURROGATE.search(text, position, end) else value), end


def _with_keywords(value: Any) -> Any:
    """The value with keywords for the texts that are written as keywords (``":ok"``)."""
    if isinstance(value, str):
        return edn.keyword_or_text(value[1:]) if value[:1] == ":" else value
    if isinstance(value, list):
        return [_with_keywords(item) for item in value]
    if isinstance(value, dict):
        return {_with_keywords(key): _with_keywords(item) for key, item in value.items()}
    return value


def _depth(value: Any) -> int:
    """How deep lists and objects are nested in a value."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for container in level
            if isinstance(container, list | dict)
            for inner in (container.values() if isinstance(container, dict) else container)
        ]
    return depth


def _printable(value: Any) -> Any:
    """The value with texts that a file can hold."""
    if isinstance(value, str):
        return edn.printable(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {edn.printable(key): _printable(item) for key, item in value.items()}
    return value


_JSON: Final = json.JSONDecoder(parse_float=edn.number_of)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a character that takes two."""


class _Lines:
    """The lines of a file, with a look at the next."""

    def __init__(self, file: Iterator[str]) -> None:
        self._file = file
        self._next = next(file, None)
        self.number = 0
        """Of the line that was taken last, from 1."""

    def peek(self) -> str | None:
        return self._next

    def take(self) -> str | None:
        line, self._next = self._next, next(self._file, None)
        self.number += line is not None
        return line


def _said(form: Any, number: int) -> Read:
    try:
        return operation_of(form, number)
    except NotAnOperation as error:
        return Unreadable(number, str(error))


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:80]

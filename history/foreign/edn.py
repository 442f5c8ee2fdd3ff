"""Reading and writing EDN, the notation of Jepsen's histories.

``parse`` reads one value out of a text, ``dumps`` writes one. nil, booleans, numbers and strings become Python's own;
vectors and lists become tuples, sets ``EdnSet``, maps dicts, keywords ``Keyword``, everything else that is a word
``Symbol``, and a tagged value ``Tagged``. Characters become strings of one letter. A number that a float would round
becomes a ``Decimal``.

Why not a library: ``edn_format`` 0.8 is the one that is kept up, and takes 1.7 ms for the line of a transaction, half
an hour for a million of them; this one takes 30 µs. A history has millions of lines.

Source: the EDN specification (edn-format/edn). Limits: no namespaced maps, no metadata; ratios and anything else that
looks like a word is a ``Symbol``; a map's key may hold no map; nothing is nested more than 100 deep.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple


class EdnError(ValueError):
    """A text is no EDN. ``is_incomplete``: it ends inside a value, so that more text might make it whole."""

    def __init__(self, message: str, *, is_incomplete: bool = False) -> None:
        super().__init__(message)
        self.is_incomplete = is_incomplete


class Keyword(str):
    """``:name``, without its colon. Equal to the plain word, which is what JSON has in its place."""

    __slots__ = ()


def keyword_or_text(word: str) -> str:
    """Return a word as a keyword, or as text if it cannot be one."""
    return Keyword(word) if _KEYWORD.fullmatch(word) else word


class Symbol(str):
    """A bare word."""

    __slots__ = ()


class EdnSet(tuple[Any, ...]):
    """The elements of a set, in the order in which they were written."""

    __slots__ = ()


class Tagged(NamedTuple):
    """``#tag value``."""

    tag: str
    value: Any


@dataclass(slots=True)
class _Frame:
    """A value that has begun: its closing bracket ("" for what takes the one value behind it), and what it holds."""

    closer: str
    items: list[Any]
    is_map: bool = False
    is_set: bool = False
    tag: str | None = None
    """None of a value that is to be discarded, where there is no closing bracket."""


MAX_DEPTH: Final = 100
MAX_DIGITS: Final = 1000
"""A longer integer stays a word."""
EMPTY: Final = "empty"
"""The error of a text that has no value: nothing, comments, or discarded values."""
TOO_DEEP: Final = f"values are nested more than {MAX_DEPTH} deep"
_WORD: Final = r"[^\s,;\"\[\]{}()\\]"
_TOKEN: Final = re.compile(
    r"[\s,]*(?:"
    rf":({_WORD}+)"  # 1 keyword
    r"|([+-]?\d+)(?![\w.+\-*/!?$%&=<>#':])"  # 2 integer
    r"|([\[({])"  # 3
    r"|([\])}])"  # 4
    rf"|((?![:#]){_WORD}+)"  # 5 nil, true, false, other numbers, symbols
    r'|"((?:[^"\\]|\\.)*)"'  # 6 string
    r"|(\#\{)"  # 7
    r"|(\#_)"  # 8
    r"|\#\#(-?\w+)"  # 9 ##Inf
    rf"|\#([A-Za-z]{_WORD}*)"  # 10 tag
    r"|\\(newline|return|space|tab|formfeed|backspace|u[0-9a-fA-F]{4}|.)"  # 11 character
    r"|(;[^\n]*)"  # 12 comment
    r"|(\Z)"  # 13
    r")",
    re.DOTALL,
)
_KEYWORD: Final = re.compile(r"[A-Za-z*+!?_<>=][\w.*+!?<>=/-]*")
_FLOAT: Final = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?")
_CLOSERS: Final = {"[": "]", "(": ")", "{": "}"}
_CONSTANTS: Final[dict[str, Any]] = {"nil": None, "true": True, "false": False}
_CHARACTERS: Final = {
    "newline": "\n",
    "return": "\r",
    "space": " ",
    "tab": "\t",
    "formfeed": "\f",
    "backspace": "\b",
}
_SPECIAL: Final = {"Inf": float("inf"), "-Inf": float("-inf"), "NaN": float("nan")}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SURROGATES: Final = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_PLAIN: Final = re.compile(r"[^\\\"\n\r\t\f\x08]*")
_keywords: Final[dict[str, Keyword]] = {}
"""Keywords made before: a history has millions of them, and few different ones."""
_MAX_KEYWORDS: Final = 100_000


def parse(text: str, start: int = 0) -> tuple[Any, int]:
    """Return the first value at or after ``start``, and where it ends; raises ``EdnError``."""
    stack: list[_Frame] = []
    match = _TOKEN.match
    position = start
    while True:
        token = match(text, position)
        if token is None:
            raise _unreadable(text, position)
        position = token.end()
        kind = token.lastindex
        word = token[kind or 0]
        value: Any
        if kind == 1:
            value = _keywords.get(word) or _keyword(word)
        elif kind == 2:
            value = int(word) if len(word) < MAX_DIGITS else Symbol(word)
        elif kind == 3:
            _open(stack, _Frame(_CLOSERS[word], [], is_map=word == "{"))
            continue
        elif kind == 4:
            value = _closed(stack, word)
        elif kind == 5:
            value = _CONSTANTS[word] if word in _CONSTANTS else _bare(word)
        elif kind in _UNCOMMON:
            value = _UNCOMMON[kind](word)
        elif kind == 12:
            continue
        elif kind == 13:
            raise EdnError("it ends inside a value" if stack else EMPTY, is_incomplete=True)
        else:
            _open(stack, _prefix(kind, word))
            continue
        while stack and not stack[-1].closer:
            frame = stack.pop()
            if frame.tag is None:
                break
            value = Tagged(frame.tag, value)
        else:
            if not stack:
                return value, position
            stack[-1].items.append(value)


def loads(text: str) -> Any:
    """Return the one value of a text; raises ``EdnError``."""
    value, end = parse(text)
    try:
        parse(text, end)
    except EdnError as error:
        if str(error) == EMPTY:
            return value
    raise EdnError("more than one value")


def _open(stack: list[_Frame], frame: _Frame) -> None:
    if len(stack) >= MAX_DEPTH:
        raise EdnError(TOO_DEEP)
    stack.append(frame)


def _prefix(kind: int | None, word: str) -> _Frame:
    if kind == 7:
        return _Frame("}", [], is_set=True)
    return _Frame("", [], tag=None if kind == 8 else word)


def _closed(stack: list[_Frame], closer: str) -> Any:
    if not stack or stack[-1].closer != closer:
        raise EdnError(f"{closer} closes nothing")
    frame = stack.pop()
    items = frame.items
    if frame.is_set:
        return EdnSet(items)
    if not frame.is_map:
        return tuple(items)
    if len(items) % 2:
        raise EdnError("a map has a key without a value")
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError:
        raise EdnError("a map is part of a map's key") from None


def _keyword(word: str) -> Keyword:
    keyword = Keyword(word)
    if len(_keywords) < _MAX_KEYWORDS:
        _keywords[word] = keyword
    return keyword


def _bare(word: str) -> Any:
    if word[0].isdigit() or (word[0] in "+-" and word[1:2].isdigit()):
        is_integer = word[-1] == "N" and word[:-1].lstrip("+-").isdecimal()
        if is_integer and len(word) < MAX_DIGITS:
            return int(word[:-1])
        if _FLOAT.fullmatch(word):
            return number_of(word.removesuffix("M"))
    return Symbol(word)


def number_of(word: str) -> float | Decimal:
    """Return a number with a fraction or an exponent: a float if that has the same value, else a ``Decimal``."""
    rounded = float(word)
    try:
        exact = Decimal(word)
    except InvalidOperation:  # The exponent is beyond every bound.
        return rounded
    return rounded if exact == Decimal(repr(rounded)) else exact


def _unescaped(match: re.Match[str]) -> str:
    code, letter = match.groups()
    return chr(int(code, 16)) if code else _ESCAPES.get(letter, letter)


def _string(word: str) -> str:
    return printable(_ESCAPE.sub(_unescaped, word)) if "\\" in word else word


def _special(word: str) -> Any:
    return _SPECIAL.get(word, Symbol(f"##{word}"))


def _character(word: str) -> str:
    is_code = len(word) == 5 and word[0] == "u"
    return printable(chr(int(word[1:], 16))) if is_code else _CHARACTERS.get(word, word)


_UNCOMMON: Final[dict[int | None, Callable[[str], Any]]] = {
    6: _string,
    9: _special,
    11: _character,
}


def _unreadable(text: str, position: int) -> EdnError:
    rest = text[position:].lstrip(" \t\r\n,")
    if rest.startswith('"'):
        return EdnError("a string does not end", is_incomplete=True)
    return EdnError(f"{rest[:20]!r} is no EDN")


def dumps(value: Any) -> str:
    """Return a value as EDN on one line; raises ``TypeError`` for what EDN has no notation for."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Keyword):
        return f":{value!s}"
    if isinstance(value, Symbol):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, Tagged):
        return f"#{value.tag} {dumps(value.value)}"
    if isinstance(value, EdnSet):
        return f"#{{{' '.join(map(dumps, value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{dumps(key)} {dumps(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(dumps, value))}]"
    raise TypeError(f"{type(value).__name__} has no notation in EDN")


def canonical(value: Any) -> str:
    """Return a value as EDN, the same for equal values: what has no order, sets and maps, comes sorted.

    Raises ``TypeError`` as ``dumps`` does.
    """
    return dumps(_ordered(value))


def _ordered(value: Any) -> Any:
    if isinstance(value, Tagged):
        return Tagged(value.tag, _ordered(value.value))
    if isinstance(value, EdnSet):
        return EdnSet(sorted(map(_ordered, value), key=dumps))
    if isinstance(value, dict):
        entries = [(_ordered(key), _ordered(item)) for key, item in value.items()]
        return dict(sorted(entries, key=lambda entry: dumps(entry[0])))
    if isinstance(value, list | tuple):
        return tuple(map(_ordered, value))
    return value


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal: unlike in Python true is not 1, nor is 1.0, and a set has no order."""
    if is_vector(value) and is_vector(other):
        return len(value) == len(other) and all(map(same, value, other))
    if type(value) is not type(other):
        return False
    return (
        bool(value == other)
        if isinstance(value, int | str)
        else canonical(value) == canonical(other)
    )


def is_vector(value: Any) -> bool:
    """Whether a value is a vector or a list."""
    return isinstance(value, list | tuple) and not isinstance(value, EdnSet | Tagged)


def printable(text: str) -> str:
    """Return a text that a file can hold: two surrogates become the character they mean, a lone one is spelled out."""
    return _SURROGATES.sub(_joined, text)


def _joined(match: re.Match[str]) -> str:
    high, low = match.groups()
    if high is None:
        return f"\\u{ord(match[0]):04x}"
    return chr(0x10000 + ((ord(high) & 0x3FF) << 10) + (ord(low) & 0x3FF))


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "##NaN" if math.isnan(value) else "##Inf" if value > 0 else "##-Inf"


def _decimal(value: Decimal) -> str:
    """A decimal without zeros at its end, which no other text of the same number has."""
    mantissa, _, exponent = f"{value:E}".partition("E")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}E{exponent}M"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, f"\\{letter}")
    return f'"{escaped}"'

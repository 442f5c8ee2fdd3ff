"""Numbers for keys and values that are none, and back.

Checkers compute with numbers from 0 on. A whole number from 0 to 2**62 − 1 stands for itself; anything else (a word, a
keyword, a negative number, a vector) is given the next number from 2**62 on. The table is kept with the run, and
what is said to people has the names again: no other number of a run is as large.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec

from nemesis.history.errors import DamagedHistoryError
from nemesis.history.foreign import edn
from nemesis.history.run_directory import write_atomically

FIRST_NAME: Final = 2**62
FILE: Final = "names.json"
_NAMED: Final = re.compile(r"(?<!\d)(4611686\d{12})(?!\d)")
"""What may be the number of a name, in a text."""
_PLAIN: Final = re.compile(r"(?!(?:nil|true|false)$)[A-Za-z_][\w.\-]*")
INTEGER: Final = re.compile(r"0|-?[1-9]\d*")


class Names:
    """The table. A name is the value as EDN, the same for equal values."""

    def __init__(self, names: list[str] | None = None) -> None:
        self._names = names or []
        self._numbers = {name: FIRST_NAME + index for index, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def number(self, value: Any) -> int:
        """Return the number that stands for a key or a value, a new one if need be.

        Raises TypeError for what is no value.
        """
        if type(value) is int and 0 <= value < FIRST_NAME:
            return value
        name = edn.canonical(value)
        number = self._numbers.get(name)
        if number is None:
            number = FIRST_NAME + len(self._names)
            self._numbers[name] = number
            self._names.append(name)
        return number

    def has(self, value: Any) -> bool:
        """Whether a value has a number that is not the value itself."""
        return edn.canonical(value) in self._numbers

    def value(self, number: int) -> Any:
        """Return what a number stands for."""
        name = self._name(number)
        return number if name is None else edn.loads(name)

    def spoken(self, text: str) -> str:
        """Return a text with names in the place of their numbers."""
        return _NAMED.sub(lambda match: self._name(int(match[1])) or match[1], text)

    def _name(self, number: int) -> str | None:
        is_name = FIRST_NAME <= number < FIRST_NAME + len(self._names)
        return self._names[number - FIRST_NAME] if is_name else None

    def write(self, directory: Path) -> None:
        """Keep the table in the directory of a run; an empty one is no file. Raises OSError."""
        if self._names:
            write_atomically(directory / FILE, msgspec.json.encode(self._names) + b"\n")

    @classmethod
    def read(cls, directory: Path) -> Names:
        """Return the table of a run; an empty one if it has none. Raises DamagedHistoryError."""
        file = directory / FILE
        try:
            return cls(msgspec.json.decode(file.read_bytes(), type=list[str]))
        except FileNotFoundError:
            return cls()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DamagedHistoryError(f"{file} is damaged: {error}") from None


def word_of(value: Any) -> str:
    """Return a key or a process as one word, from which ``value_of`` makes it again: a number, a plain word, or EDN."""
    is_plain = type(value) is str and _PLAIN.fullmatch(value)
    return str(value) if is_plain else edn.canonical(value)


def value_of(word: str) -> Any:
    """Return the key or process that a word stands for."""
    if INTEGER.fullmatch(word):
        return int(word)
    return word if _PLAIN.fullmatch(word) else edn.loads(word)

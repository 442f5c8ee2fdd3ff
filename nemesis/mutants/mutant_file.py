"""A planted bug from a file outside the package: what ``--mutant FILE.py`` names.

The file has the form of the package's own modules: Python that binds ``MUTANT`` to a ``Mutant``. A run carries the
text of the file, so that nothing depends on the file after it was read: other processes plant the same bug, and a
stored run keeps a copy. The text is executed again for each simulated run. Variables of the module therefore begin
each run with the same values, as a run that can be repeated needs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from nemesis.mutants.base import Mutant, MutantError, Replacement

SUFFIX: Final = ".py"
NAME: Final = "MUTANT"
REFERENCE: Final = "nemesis.reference"
TEXTS: Final = ("name", "property", "summary", "scenario")


@dataclass(frozen=True, slots=True)
class MutantFile:
    """The text of a file that plants a bug. Can be sent to another process."""

    path: str
    """As the user wrote it. Messages and reports contain it; nothing is read from it again."""
    text: str

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text in UTF-8, in hexadecimal digits."""
        return sha256(self.text.encode()).hexdigest()

    def load(self) -> Mutant:
        """Execute the text and return its mutant. Raises ``MutantError``: the text is not Python, raises an exception,
        or has not exactly one mutant with valid fields.
        """
        return self._checked(self._executed())

    def try_to_plant(self) -> Mutant:
        """Plant the bug, take it out again, and return it; raises what ``load`` raises, and ``MutantError`` when an
        attribute does not exist or cannot be replaced.
        """
        mutant = self.load()
        for replacement in mutant.replacements:
            if not f"{replacement.module}.".startswith(f"{REFERENCE}."):
                raise MutantError(
                    f"{self.path}: expected a replacement in {REFERENCE}, got one in {replacement.module!r}: "
                    "name a module of the reference"
                )
        try:
            with mutant.planted():
                pass
        except MutantError as error:
            raise MutantError(f"{self.path}: {error}") from None
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            raise MutantError(self._raised("can be planted", error)) from None
        return mutant

    def _executed(self) -> dict[str, Any]:
        """Return the variables of the module."""
        try:
            code = compile(self.text, self.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise MutantError(
                f"{self.path}: expected Python, got {error.msg} in line {error.lineno}: correct the file"
            ) from None
        except ValueError as error:
            raise MutantError(
                f"{self.path}: expected Python, got {error}: correct the file"
            ) from None
        module = ModuleType(f"nemesis_mutant_{self.sha256[:16]}")
        sys.modules[module.__name__] = module  # dataclasses and pickle look for it there
        try:
            exec(code, module.__dict__)  # noqa: S102 - the user demands it
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
            del sys.modules[module.__name__]
            raise MutantError(self._raised("can be imported", error)) from None
        return module.__dict__

    def _raised(self, expected: str, error: BaseException) -> str:
        """Return the sentence about an exception of the user's code."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self.path]
        position = f" in line {lines[-1]}" if lines else ""
        text = " ".join(str(error).split())
        cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return (
            f"{self.path}: expected a file that {expected}, got {cause}{position}: correct the file"
        )

    def _checked(self, variables: dict[str, Any]) -> Mutant:
        """Return the one mutant of the module."""
        mutants = {name: value for name, value in variables.items() if isinstance(value, Mutant)}
        if len({id(mutant) for mutant in mutants.values()}) > 1:
            raise MutantError(
                f"{self.path}: expected one mutant, got {', '.join(mutants)}: write a file for each"
            )
        if NAME not in mutants:
            present = ", ".join(mutants) or _described(variables.get(NAME))
            raise MutantError(
                f"{self.path}: expected {NAME} = Mutant(...), got {present}: see docs/adding.md for an example"
            )
        mutant = mutants[NAME]
        for field in TEXTS:
            self._require(mutant, field, "a text", _is_text)
        self._require(
            mutant, "replacements", "a tuple of at least one Replacement", _are_replacements
        )
        return mutant

    def _require(
        self, mutant: Mutant, field: str, expected: str, holds: Callable[[object], bool]
    ) -> None:
        value = getattr(mutant, field)
        if not holds(value):
            raise MutantError(
                f"{self.path}: {NAME}.{field}: expected {expected}, got {value!r}: correct the file"
            )


def read_mutant_file(path: str) -> MutantFile:
    """Return the file with its text; raises ``MutantError`` when it cannot be read."""
    try:
        return MutantFile(path, Path(path).read_bytes().decode())
    except OSError as error:
        raise MutantError(
            f"{path}: expected a file with a mutant, got {error.strerror}: choose a file that exists"
        ) from None
    except UnicodeDecodeError:
        raise MutantError(
            f"{path}: expected Python in UTF-8, got other bytes: write the file in UTF-8"
        ) from None


def _described(value: object) -> str:
    return "none" if value is None else f"{NAME} of type {type(value).__name__}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_replacements(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(isinstance(item, Replacement) for item in value)
    )

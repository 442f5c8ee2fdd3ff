"""What a mutant is: named replacements of attributes of the reference.

A mutant names each attribute that it replaces. When one is gone, because the reference was changed, planting
fails loudly: a mutant that replaces nothing would make the harness look blind.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nemesis.mutants.reach import Reach


class MutantError(Exception):
    """A mutant is unknown, or what it replaces is gone. Nothing was planted."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One attribute of the reference and what stands in its place."""

    module: str
    attribute: str
    """Dotted path inside the module: ``Partition.leader_high_watermark_candidate``."""
    make: Callable[[Any], Any]
    """Takes the correct attribute, returns the wrong one."""
    is_comparable: bool = False
    """Whether both are functions that change nothing and await nothing: then both can be called, and a run counts how
    often their results differ."""

    def resolve(self) -> tuple[Any, str, Any]:
        """Return (owner, name, present value); raises ``MutantError`` when it is not there."""
        try:
            owner: Any = importlib.import_module(self.module)
            *path, name = self.attribute.split(".")
            for step in path:
                owner = getattr(owner, step)
            return owner, name, vars(owner)[name]
        except (ImportError, AttributeError, KeyError, TypeError, ValueError):
            raise MutantError(
                f"{self.module} has no {self.attribute}: a mutant has to name an attribute of the present reference"
            ) from None

    def made(self, correct: Any, reach: Reach | None) -> Any:
        """Return the wrong attribute, counted by ``reach`` if there is one."""
        wrong = self.make(correct)
        if reach is None:
            return wrong
        return reach.counted(correct, wrong, is_comparable=self.is_comparable)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug."""

    name: str
    property: str
    """The property that must catch it."""
    summary: str
    """One sentence: what is wrong, and where it comes from."""
    replacements: tuple[Replacement, ...]
    scenario: str = "partition-controller"
    """Where it is searched: what it breaks has to happen there."""

    def plant(self, reach: Reach | None = None) -> Callable[[], None]:
        """Replace every attribute, or none: raises ``MutantError`` before the first is touched. Returns what takes the
        bug out again. ``reach`` counts what the bug does.
        """
        resolved = [(replacement, *replacement.resolve()) for replacement in self.replacements]
        made = [
            (owner, name, correct, replacement.made(correct, reach))
            for replacement, owner, name, correct in resolved
        ]
        for owner, name, _, wrong in made:
            setattr(owner, name, wrong)

        def take_out() -> None:
            for owner, name, correct, _ in reversed(made):
                setattr(owner, name, correct)

        return take_out

    @contextmanager
    def planted(self) -> Iterator[Reach]:
        """Carry the bug inside the block only; for simulations, which share a process. Yields what the bug does."""
        reach = Reach()
        take_out = self.plant(reach)
        try:
            yield reach
        finally:
            take_out()

"""A generated mutant as a value: which code changes, from what to what, and its identity.

The identity of a mutant is ``module:function:line:operator:index#digest``, for example
``controller/election:new_leader_and_isr:97:off-by-one:0#5f0c91aa``. The digest covers the text of the whole function
and the change. An argument about a mutant in ``docs/survivors.md`` is therefore stale as soon as its function changes,
and not when the function only moves to another line.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What an operator does at one position of a function."""

    node: ast.expr | ast.stmt
    """The changed node of the function's tree."""
    original: str
    mutant: str
    """Source text of the change as a reader would write it, without the probe."""
    replacements: Mapping[ast.AST, ast.AST]
    """Nodes of the tree, and what replaces each of them; calls the probe."""


@dataclass(frozen=True, slots=True, eq=False)
class Mutation:
    """One mutant of the reference."""

    module: str
    """Path under ``reference/`` without ``.py``: ``controller/election``."""
    function: str
    """Qualified name of the outermost function."""
    function_line: int
    """The function's first line, decorators included: with the name it identifies the code object."""
    line: int
    unit: int
    """Where the innermost code begins that runs as a whole and contains the change (``sources.Function.unit_of``)."""
    operator: str
    index: int
    """Counts the mutants of the same function and operator."""
    function_text: str = field(repr=False)
    change: Change = field(repr=False)

    @property
    def digest(self) -> str:
        """Of the function's text and the change."""
        text = "\0".join((self.function_text, self.change.original, self.change.mutant))
        return sha256(text.encode()).hexdigest()[:8]

    @property
    def name(self) -> str:
        """The identity that users read and write."""
        return (
            f"{self.key[0]}:{self.function}:{self.line}:{self.operator}:{self.index}#{self.digest}"
        )

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """The identity without the line, which changes when other code does."""
        return self.module, self.function, self.operator, self.index, self.digest

    @property
    def description(self) -> str:
        """The change in one line."""
        return f"{shortened(self.change.original)} → {shortened(self.change.mutant)}"

    def rank(self, seed: int) -> str:
        """Return a random number of this mutant under this seed, as text.

        Other functions' changes leave it as it is, so that a draw stays comparable while the reference is worked on.
        """
        parts = (
            seed, self.module, self.function, self.operator, self.index, self.change.original, self.change.mutant,
        )  # fmt: skip
        return sha256("\0".join(map(str, parts)).encode()).hexdigest()


def shortened(text: str, length: int = 90) -> str:
    """Return the text on one line, its end cut off when it is long."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"

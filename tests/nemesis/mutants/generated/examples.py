"""Mutates small functions given as text: the mutants of one operator, and their code with a probe."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.operators import OPERATORS
from nemesis.mutants.generated.sources import functions
from nemesis.mutants.generated.trees import copied
from nemesis.mutants.probe import NAME, Probe


@dataclass(frozen=True)
class Example:
    """One mutant of an example, executed: its names and its probe."""

    change: Change
    names: dict[str, Any]
    probe: Probe

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    @property
    def counts(self) -> tuple[int, int]:
        """How often it was reached, and effective."""
        return self.probe.reached, self.probe.effective


def changes(operator: str, text: str) -> list[Change]:
    """Return the changes of an operator in the functions of a text."""
    tree = ast.parse(dedent(text))
    return [
        change
        for function in functions("example", tree)
        for change in OPERATORS[operator](function)
    ]


def mutants(operator: str, text: str) -> list[str]:
    """Return what the changes of an operator make of it, in the sequence of the text."""
    return [change.mutant for change in changes(operator, text)]


def example(operator: str, text: str, mutant: str) -> Example:
    """Execute the text with the change whose mutant reads like this."""
    tree = ast.parse(dedent(text))
    [change] = [
        change
        for function in functions("example", tree)
        for change in OPERATORS[operator](function)
        if change.mutant == mutant
    ]
    probe = Probe()
    names: dict[str, Any] = {NAME: probe}
    changed = ast.fix_missing_locations(copied(tree, change.replacements))
    exec(compile(changed, "example", "exec"), names)
    return Example(change, names, probe)

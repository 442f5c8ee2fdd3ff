"""What transactions and micro-operations are called in sentences.

Transactions are called by their ``op``: T12. Lists are named by their last elements.
"""

from __future__ import annotations

from typing import Final

from nemesis.checkers.cycles.analysis import Analysis
from nemesis.checkers.cycles.initial import OF_NIL
from nemesis.checkers.cycles.transactions import WRITE
from nemesis.checkers.initial_values import NIL

SHOWN: Final = 8
"""Elements of a list that its name shows, its last ones."""


class Words:
    """The words for what an analysis speaks of; ``micro`` is a number of a micro-operation."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    def key(self, micro: int) -> str:
        return self.analysis.micro.key_name(micro)

    def txn(self, micro: int) -> int:
        return int(self.analysis.micro.txn[micro])

    def name(self, micro: int) -> str:
        return self.analysis.txns.name(self.txn(micro))

    def value(self, micro: int) -> str:
        """What was read or written, as findings print it."""
        elements = self.analysis.micro.elements(micro)
        if self.analysis.micro.code[micro] == WRITE:
            return str(elements[0])
        if self.analysis.list_orders is None:
            return self.element(elements[0] if elements else self.analysis.initial)
        omitted = "…, " if len(elements) > SHOWN else ""
        return f"[{omitted}{', '.join(map(str, elements[-SHOWN:]))}]"

    @staticmethod
    def element(element: int) -> str:
        """A value of a register, nil included."""
        return "nil" if element in (NIL, OF_NIL) else str(element)

    @property
    def wrote(self) -> str:
        return "wrote" if self.analysis.list_orders is None else "appended"

    @property
    def changes(self) -> str:
        """The noun of ``wrote``, in the plural."""
        return "writes" if self.analysis.list_orders is None else "appends"

    @property
    def written(self) -> str:
        """The participle of ``wrote``."""
        return "written" if self.analysis.list_orders is None else "appended"

    def read(self, micro: int) -> str:
        """Who read what of which key."""
        return f"{self.name(micro)} read {self.value(micro)} of {self.key(micro)}"

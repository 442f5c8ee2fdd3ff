"""Findings about elements of collections: their names, which of them are shown first, and the events that prove them.

Sets and queues share this: an element is a value of a key that one operation puts in and others return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import NONE, Puts
from nemesis.checkers.linearizable.object_operations import Operations

ElementProperty: Final = partial(
    Property, unknown="Events cannot be paired to operations, or no such operation succeeded."
)
"""A property of elements, undecided where no operation that it is about succeeded."""


@dataclass(frozen=True, slots=True)
class WhyUnexpected:
    """Clauses that say why an element cannot have been returned."""

    too_late: str
    """Its put began after the answer."""
    failed: str
    """Its put certainly failed."""
    absent: str
    """The history has no put of it."""


@dataclass(frozen=True, slots=True)
class ElementFindings:
    """Builds findings. ``key`` and ``value`` have one entry for each element."""

    operations: Operations
    key: Numbers
    value: Numbers

    def first_by_row(self, elements: Numbers, operation_of: Numbers) -> list[int]:
        """Return at most ``MAX_FINDINGS`` elements in the order of the history.

        ``operation_of``: for each element, the operation whose completion decides its position.
        """
        rows = self.operations.completed[operation_of[elements]]
        first: list[int] = elements[np.argsort(rows, kind="stable")][:MAX_FINDINGS].tolist()
        return first

    def names(self, element: int) -> tuple[str, str]:
        """Return the names of the element's key and value."""
        key = phrases.key_name(int(self.key[element]))
        return key, phrases.value_name(int(self.value[element]))

    def why_unexpected(self, element: int, puts: Puts, reasons: WhyUnexpected) -> tuple[int, str]:
        """Return the operation that was to put the element in (or ``NONE``), and why it explains no answer."""
        if puts.attempted[element] != NONE:
            return int(puts.attempted[element]), reasons.too_late
        if puts.failed[element] != NONE:
            return int(puts.failed[element]), reasons.failed
        return NONE, reasons.absent

    def finding(
        self,
        decided: Property,
        key: str,
        sentence: str,
        steps: Sequence[str],
        *operations: int,
        verdict: Verdict = Verdict.INVALID,
    ) -> Finding:
        """Return a finding that these operations prove; ``NONE`` among them is left out."""
        known = (operation for operation in operations if operation != NONE)
        shown = phrases.rows(self.operations, *known)
        return finding(decided.name, key, sentence, *shown, verdict=verdict, steps=tuple(steps))

"""What the checks of this package share: rows in, operations of the whole history out.

Of each row group the operations are kept, and the elements of the lists that one of their names answers with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec
import numpy as np

from nemesis.checkers.framework.fold import GlobalCheck, Results, conclude
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.framework.segment import Mask, Segment
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import COLUMN, Listed, all_listed, listed
from nemesis.checkers.linearizable.joining import (
    COLUMNS,
    KINDS,
    Pairs,
    UnpairableError,
    operations,
    pairs,
)
from nemesis.checkers.linearizable.object_operations import OK, Operations

UNIT: Final = "operations"


@dataclass(frozen=True, slots=True)
class Part:
    """What is needed of one row group."""

    pairs: Pairs
    listed: Listed


class ObjectCheck(GlobalCheck[Part]):
    """A check of operations on objects of one kind, all keys at once."""

    kinds = KINDS
    columns = (*COLUMNS, COLUMN)
    fs: ClassVar[tuple[str, ...]]
    """The names of the operations; ``Operations.f`` counts in them."""
    lists: ClassVar[Sequence[str]] = ()
    """Those whose events state lists."""
    list_column: ClassVar[str] = COLUMN
    """The column of the lists."""

    def part(self, segment: Segment) -> Part:
        return Part(pairs(segment, self.fs), listed(segment, self.lists, self.list_column))

    def judge(self, parts: list[Part]) -> Results:
        lists = [part.listed for part in parts]
        found_pairs = [part.pairs for part in parts]
        parts.clear()
        try:
            all_operations = operations(found_pairs)
        except UnpairableError as error:
            return [
                conclude(
                    decided,
                    checked=0,
                    findings=[phrases.unpairable(decided.name, error.row)],
                )
                for decided in self.properties()
            ]
        return self.decide(all_operations, all_listed(lists))

    @abstractmethod
    def decide(self, operations: Operations, lists: Listed) -> Results:
        """Turn the operations, in any order, and the lists, in that of the history, into results."""


def decided_by_order(
    results: Sequence[Result], operations: Operations, observing: Mask, unit: str
) -> list[Result]:
    """Return the results of an object that is judged by an order of all its operations.

    Properties without values of their own to check are decided by the operations that succeeded: ``valid``. If none of
    the ``observing`` operations did, nothing was observed, and what no finding decides is ``unknown``. ``unit``: what
    these operations are called.
    """
    is_ok = operations.outcome == OK
    succeeded = int(np.count_nonzero(is_ok))
    is_observed = bool((is_ok & observing).any())
    decided = []
    for result in results:
        is_allowed = all(finding.verdict is Verdict.VALID for finding in result.findings)
        if is_allowed and not is_observed:
            result = msgspec.structs.replace(result, verdict=Verdict.UNKNOWN, checked=0, unit=unit)
        elif is_allowed and not result.checked:
            result = msgspec.structs.replace(
                result, verdict=Verdict.VALID, checked=succeeded, unit=UNIT
            )
        decided.append(result)
    return decided

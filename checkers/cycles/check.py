"""The checks: transactions that append to lists, and transactions over registers.

What they have to keep is a consistency model (``models.MODELS``), serializability unless another is asked for. An
anomaly that it allows is reported, and ``valid``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from nemesis.checkers.cycles.models import ANOMALIES, CYCLES, SERIALIZABLE, Model
from nemesis.checkers.cycles.rows import COLUMNS, KINDS, Rows
from nemesis.checkers.framework.fold import Results, Whole, conclude
from nemesis.checkers.framework.segment import Segment

if TYPE_CHECKING:
    from nemesis.checkers.cycles.analysis import Analysis

WELL_FORMED: Final = "well-formed"
_OF_LISTS: Final = ("duplicate-elements", "incompatible-order", "dirty-update")


class Transactional(Whole[Rows]):
    """What both have in common."""

    kinds = frozenset(KINDS)
    columns = COLUMNS

    def __init__(self, model: Model = SERIALIZABLE) -> None:
        self.model = model

    def part(self, segment: Segment) -> Rows:
        return Rows.of(segment)

    def judge(self, parts: list[Rows]) -> Results:
        rows = Rows.joined(parts)
        if not len(rows.row):
            return [conclude(name, checked=0) for name in self.properties]
        # numba takes half a second to import, which a history without transactions need not wait for.
        from nemesis.checkers.cycles.explain import Explainer

        analysis = self._analyse(rows)
        explainer = Explainer(analysis, self.model)
        trouble, count = explainer.trouble(WELL_FORMED)
        results = [
            conclude(
                WELL_FORMED,
                checked=len(analysis.txns),
                unit="transactions",
                findings=trouble,
                finding_count=count,
            )
        ]
        for name in self.properties[1:]:
            findings, count = explainer.findings(name)
            is_cycle = name in CYCLES
            results.append(
                conclude(
                    name,
                    checked=analysis.dependencies if is_cycle else analysis.reads,
                    unit="dependencies" if is_cycle else "reads",
                    findings=findings,
                    finding_count=count,
                )
            )
        return results

    @abstractmethod
    def _analyse(self, rows: Rows) -> Analysis:
        """Find the anomalies."""


class ListAppend(Transactional):
    """Transactions of appends to lists and reads of lists."""

    name: ClassVar[str] = "list-append"
    properties = (WELL_FORMED, *ANOMALIES)

    def _analyse(self, rows: Rows) -> Analysis:
        from nemesis.checkers.cycles.analysis import analyse_lists

        return analyse_lists(rows, self.model)


class RwRegister(Transactional):
    """Transactions of writes to registers and reads of them."""

    name: ClassVar[str] = "rw-register"
    properties = (WELL_FORMED, *(name for name in ANOMALIES if name not in _OF_LISTS))

    def _analyse(self, rows: Rows) -> Analysis:
        from nemesis.checkers.cycles.analysis import analyse_registers

        return analyse_registers(rows, self.model)

"""The checks: transactions that append to lists, and transactions over registers.

What they have to keep is a consistency model (``models.MODELS``), strict serializability unless another is asked for,
as in Elle. An anomaly that it allows is reported, and ``valid``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from nemesis.checkers.breaks import cycles as breaks
from nemesis.checkers.cycles.asked_anomalies import model_asked
from nemesis.checkers.cycles.models import (
    ANOMALIES,
    CYCLE_EXISTS,
    CYCLES,
    STRICT_SERIALIZABLE,
    WELL_FORMED,
    Model,
)
from nemesis.checkers.cycles.transaction_rows import COLUMNS, KINDS, Rows
from nemesis.checkers.framework.asked import Asked
from nemesis.checkers.framework.fold import GlobalCheck, Results, conclude
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.initial_values import NIL
from nemesis.history.sources import EventSource

if TYPE_CHECKING:
    from nemesis.checkers.cycles.analysis import Analysis

_EXPLICABLE: Final = frozenset({"garbage-read"})
"""What a transaction that the history lacks may explain. All other anomalies consist of what was observed: further
transactions only add to them."""
_OF_LISTS: Final = ("duplicate-elements", "incompatible-order", "dirty-update")


ALL_ANOMALIES: Final = frozenset(ANOMALIES)


class Transactional(GlobalCheck[Rows]):
    """What both have in common."""

    kinds = frozenset(KINDS)
    columns = COLUMNS

    def __init__(
        self, model: Model = STRICT_SERIALIZABLE, judged: frozenset[str] = ALL_ANOMALIES
    ) -> None:
        """``judged``: the anomalies whose results are used; others do not end the search for ``cycle-exists``."""
        self.model = model
        self.judged = judged

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(model_asked(asked), judged=asked.judged)

    def part(self, segment: Segment) -> Rows:
        return Rows.of(segment)

    def judge(self, parts: list[Rows]) -> Results:
        rows = Rows.joined(parts)
        if not len(rows.row):
            return [conclude(decided, checked=0) for decided in self.properties()]
        # numba takes half a second to import, which a history without transactions need not wait for.
        from nemesis.checkers.cycles.analysis import require_sessions
        from nemesis.checkers.cycles.explain import Explainer

        analysis = self._analyse(rows)
        require_sessions(analysis, self.model, self.judged)
        explainer = Explainer(analysis, self.model)
        trouble, count = explainer.trouble(WELL_FORMED)
        results = [
            conclude(
                _WELL_FORMED,
                checked=len(analysis.txns),
                findings=trouble,
                finding_count=count,
            )
        ]
        for decided in self.properties()[1:]:
            findings, count = explainer.findings(decided.name)
            is_cycle = decided.name in CYCLES
            results.append(
                conclude(
                    decided,
                    checked=analysis.dependencies if is_cycle else analysis.reads,
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

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (_WELL_FORMED, *ANOMALY_PROPERTIES.values())

    def _analyse(self, rows: Rows) -> Analysis:
        from nemesis.checkers.cycles.analysis import analyse_lists

        return analyse_lists(rows, self.model, self.judged)


class RwRegister(Transactional):
    """Transactions of writes to registers and reads of them."""

    def __init__(
        self,
        model: Model = STRICT_SERIALIZABLE,
        initial: int | None = NIL,
        *,
        has_real_time: bool = True,
        key_options: Collection[str] = (),
        judged: frozenset[str] = ALL_ANOMALIES,
    ) -> None:
        """``initial``: the value before any write; None if it is not stated. ``key_options``: see ``key_orders``."""
        super().__init__(model, judged)
        self.initial = initial
        self.has_real_time = has_real_time
        self.key_options = frozenset(key_options)

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(
            model_asked(asked),
            asked.initial,
            has_real_time=asked.has_real_time,
            key_options=asked.key_options,
            judged=asked.judged,
        )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        others = (stated for name, stated in ANOMALY_PROPERTIES.items() if name not in _OF_LISTS)
        return (_WELL_FORMED, *others)

    def _analyse(self, rows: Rows) -> Analysis:
        from nemesis.checkers.cycles.analysis import analyse_registers

        return analyse_registers(
            rows,
            self.model,
            self.initial,
            has_real_time=self.has_real_time,
            key_options=self.key_options,
            judged=self.judged,
        )


_SOURCE: Final = 'Adya, "Weak Consistency" (1999); Kingsbury and Alvaro, "Elle" (VLDB 2020), whose names these are.'
_WELL_FORMED: Final = Property(
    name=WELL_FORMED,
    promise="The transactions can be told apart and read.",
    unit="transactions",
    unknown="Two transactions have one name, or a micro-operation cannot be read.",
    source=_SOURCE,
    check=ListAppend,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.WELL_FORMED,
)
ANOMALY_PROPERTIES: Final[Mapping[str, Property]] = MappingProxyType(
    {
        name: Property(
            name=name,
            promise=anomaly.promise,
            unit="dependencies" if name in CYCLES else "reads",
            unknown="No transaction that counts was observed, or the transactions are not well-formed."
            if name != CYCLE_EXISTS
            else "No read counts, no process has a second transaction, or the search for an order ends at a bound.",
            source=_SOURCE,
            check=RwRegister if name == CYCLE_EXISTS else ListAppend,
            decided_from=frozenset({EventSource.CLIENTS}),
            is_self_evident=name not in _EXPLICABLE,
            breaks=breaks.ANOMALIES[name],
        )
        for name, anomaly in ANOMALIES.items()
    }
)
"""The property that each anomaly breaks, by the anomaly's name, in the order of reports."""

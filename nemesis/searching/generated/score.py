"""The mutation score: how many of the effective mutants a property finds, by package, by operator and in all.

``score = killed / (killed + survived - equivalent)``. A mutant that crashes a broker, hangs or makes the harness fail
is counted apart and is not in the score: no property found it. The interval is Wilson's, 95 %: it is right for few
mutants, too (Brown, Cai, DasGupta, "Interval estimation for a binomial proportion", 2001).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final

from nemesis.searching.generated.results import MutantRecord, Status

Z: Final = 1.959963984540054
"""Of the normal distribution, for 95 %."""


@dataclass(slots=True)
class Row:
    """Mutants that are counted together."""

    label: str
    counts: Counter[Status] = field(default_factory=Counter)
    equivalent: int = 0
    """Survivors with an argument in ``docs/survivors.md``."""
    properties: Counter[str] = field(default_factory=Counter)
    """How many mutants each property found."""
    alone: Counter[str] = field(default_factory=Counter)
    """How many only this property found."""

    def add(self, record: MutantRecord, *, is_equivalent: bool) -> None:
        """Count a mutant."""
        self.counts[record.status] += 1
        self.equivalent += is_equivalent and record.status is Status.SURVIVED
        self.properties.update(record.killed_by)
        if len(record.killed_by) == 1:
            self.alone.update(record.killed_by)

    @property
    def drawn(self) -> int:
        return self.counts.total()

    @property
    def reached(self) -> int:
        return self.drawn - self.counts[Status.NOT_REACHED]

    @property
    def effective(self) -> int:
        """All that did something else than the original, those that are not in the score included."""
        return self.reached - self.counts[Status.NO_EFFECT]

    @property
    def scored(self) -> int:
        """The denominator of the score."""
        return self.counts[Status.KILLED] + self.counts[Status.SURVIVED] - self.equivalent

    @property
    def score(self) -> float | None:
        """Between 0 and 1; None without a mutant that could be killed."""
        return self.counts[Status.KILLED] / self.scored if self.scored else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the score."""
        return wilson(self.counts[Status.KILLED], self.scored)

    def as_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "label": self.label,
            "drawn": self.drawn,
            "reached": self.reached,
            "effective": self.effective,
            "equivalent": self.equivalent,
            **{status.value: self.counts[status] for status in Status},
            "score": self.score,
            "interval": [low, high],
            "properties": dict(self.properties.most_common()),
            "alone": dict(self.alone.most_common()),
        }


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion; 0 to 1 without trials."""
    if not trials:
        return 0.0, 1.0
    share = successes / trials
    centre = share + Z * Z / (2 * trials)
    margin = Z * sqrt(share * (1 - share) / trials + Z * Z / (4 * trials * trials))
    scale = 1 + Z * Z / trials
    return max(0.0, (centre - margin) / scale), min(1.0, (centre + margin) / scale)


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The score in all, by package of the reference, and by operator."""

    total: Row
    by_package: list[Row]
    by_operator: list[Row]

    def as_json(self) -> dict[str, Any]:
        return {
            "total": self.total.as_json(),
            "by_package": [row.as_json() for row in self.by_package],
            "by_operator": [row.as_json() for row in self.by_operator],
        }


def score_table(records: Sequence[MutantRecord], equivalent: Iterable[str] = ()) -> ScoreTable:
    """Count records; ``equivalent`` are the names of mutants that a reader judged so."""
    judged = frozenset(equivalent)
    total = Row("all")
    for record in records:
        total.add(record, is_equivalent=record.name in judged)
    return ScoreTable(
        total=total,
        by_package=_rows(records, judged, lambda record: record.module.partition("/")[0]),
        by_operator=_rows(records, judged, lambda record: record.operator),
    )


def _rows(
    records: Sequence[MutantRecord],
    judged: frozenset[str],
    label_of: Callable[[MutantRecord], str],
) -> list[Row]:
    grouped: dict[str, list[MutantRecord]] = defaultdict(list)
    for record in records:
        grouped[label_of(record)].append(record)
    rows = []
    for label, members in sorted(grouped.items()):
        row = Row(label)
        for record in members:
            row.add(record, is_equivalent=record.name in judged)
        rows.append(row)
    return rows

"""Running checks over a history: in Spark's tasks, or in this process, with identical results.

One pass reads every row group once for all checks together: folds are reduced, scans leave their
state, grouped checks say which keys they met. If there are scans or grouped checks a second pass
follows: scans now know what came before each row group, and look again at those of which their
states do not prove that all is well; grouped checks get all rows of their keys (or, if a key is too
large for that, ask for what they need of it, ``rounds``).
Both passes are maps over row groups (``nemesis.history.spark.run_all``); summaries are combined here, in
history order, so no engine can change a result. A check of the whole history is one task, which
reads all row groups for it alone.

Findings hold row numbers; ``nemesis.checkers.checking`` puts whole events in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal

from nemesis.checkers.framework.fold import (
    Fold,
    GlobalCheck,
    Grouped,
    PartitionedCheck,
    Results,
    Scan,
    conclude,
)
from nemesis.checkers.framework.model import Result
from nemesis.checkers.framework.property import Check, property_names
from nemesis.checkers.framework.rounds import run_rounds
from nemesis.checkers.framework.segment import ALWAYS, Key, Segment
from nemesis.history.row_group import RowGroup
from nemesis.history.schema import SCHEMA
from nemesis.history.spark import run_all

if TYPE_CHECKING:
    from pyspark import SparkContext

Engine = Literal["inline", "spark"]
MAX_KEYS_PER_TASK = 64
READERS = 2
"""Threads that read for a check of the whole history, which is one task: decoding and numpy let go of Python's lock."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a task needs to know; pickled to it."""

    checks: tuple[Check, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, checks: Iterable[Check]) -> _Plan:
        chosen = tuple(checks)
        return cls.reading(chosen, [name for check in chosen for name in check.columns])

    @classmethod
    def of_first_pass(cls, checks: Iterable[Check]) -> _Plan:
        """Of grouped checks only the keys are looked at."""
        chosen = tuple(checks)
        others = [check for check in chosen if not isinstance(check, Grouped)]
        return cls.reading(chosen, [name for check in others for name in check.columns])

    @classmethod
    def reading(cls, checks: tuple[Check, ...], columns: Iterable[str]) -> _Plan:
        """A plan that reads these columns, the keys, and what is always read."""
        keys = [name for check in checks if isinstance(check, Grouped) for name in check.keys]
        wanted = {*ALWAYS, *keys, *columns}
        return cls(checks, tuple(name for name in SCHEMA.names if name in wanted))

    def read(self, group: RowGroup) -> Segment:
        return Segment.of(group, self.columns)


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Work for one task of the second pass: keys of one grouped check that lie in the same row
    groups.
    """

    check: int
    keys: frozenset[Key]
    groups: tuple[RowGroup, ...]


def run_checks(
    groups: Sequence[RowGroup], checkers: Sequence[Check], spark: SparkContext | None = None
) -> list[Result]:
    """Run the checks over row groups; findings still hold row numbers instead of events."""
    global_checks = [checker for checker in checkers if isinstance(checker, GlobalCheck)]
    others = [checker for checker in checkers if not isinstance(checker, GlobalCheck)]
    judged = iter(run_all(spark, partial(_judge_globally, tuple(groups)), global_checks))
    summarised = iter(_summaries(groups, others, spark) if others else [])
    return [
        result
        for checker in checkers
        for result in _finish(
            checker, next(judged if isinstance(checker, GlobalCheck) else summarised)
        )
    ]


def _judge_globally(groups: Sequence[RowGroup], checker: Check) -> list[Results]:
    """What a check of the whole history says of it; nothing if it has no rows."""
    assert isinstance(checker, GlobalCheck)
    plan = _Plan.of([checker])

    def part(group: RowGroup) -> Any:
        segment = _rows_for(checker, plan.read(group))
        return checker.part(segment) if len(segment) else None

    with ThreadPoolExecutor(READERS) as readers:
        parts = [answer for answer in readers.map(part, groups) if answer is not None]
    return [checker.judge(parts)] if parts else []


def _summaries(
    groups: Sequence[RowGroup], checkers: Sequence[Check], spark: SparkContext | None
) -> list[list[Any]]:
    """For each check the summaries that the tasks leave, in history order."""
    plan = _Plan.of_first_pass(checkers)
    first = run_all(spark, partial(_first_pass, plan), groups)
    summaries: list[list[Any]] = [[] for _ in checkers]
    for number, checker in enumerate(plan.checks):
        if isinstance(checker, Fold):
            summaries[number] = [part[number] for part in first if part[number] is not None]
    if any(isinstance(checker, Scan) for checker in plan.checks):
        _scan(plan, groups, first, summaries, spark)
    bundles: list[_Bundle] = []
    for number, checker in enumerate(plan.checks):
        if isinstance(checker, Grouped):
            locations = _key_locations([part[number] for part in first])
            if isinstance(checker, PartitionedCheck):
                large = {
                    key: location
                    for key, location in locations.items()
                    if location.rows > checker.large
                }
                locations = {
                    key: location for key, location in locations.items() if key not in large
                }
                summaries[number] += _partitioned_summaries(checker, large, groups, spark)
            bundles += _bundles(number, groups, locations)
    for bundle, answers in zip(
        bundles, run_all(spark, partial(_check_bundle, plan), bundles), strict=True
    ):
        summaries[bundle.check] += answers
    return summaries


def _first_pass(plan: _Plan, group: RowGroup) -> list[Any]:
    """For each check: a fold's summary, a scan's state, a grouped check's keys; None if it has no
    rows.
    """
    all_rows = plan.read(group)
    answers: list[Any] = []
    for checker in plan.checks:
        segment = _rows_for(checker, all_rows)
        if not len(segment):
            answers.append(None)
        elif isinstance(checker, Fold):
            answers.append(checker.reduce(segment))
        elif isinstance(checker, Scan):
            answers.append(checker.state(segment))
        elif isinstance(checker, Grouped):
            met = segment.by(*checker.keys)
            answers.append([(key, int(rows.rows[0]), len(rows)) for key, rows in met])
        else:
            raise TypeError(f"{checker!r} is not of one of the shapes of a check")
    return answers


def _rows_for(checker: Check, all_rows: Segment) -> Segment:
    keys = checker.keys if isinstance(checker, Grouped) else ()
    return all_rows.only(checker.kinds, (*checker.columns, *keys))


def _scan(
    plan: _Plan,
    groups: Sequence[RowGroup],
    first: list[list[Any]],
    summaries: list[list[Any]],
    spark: SparkContext | None,
) -> None:
    """Chain the scans' states over the row groups, then evaluate each group with what came before it, as far as the
    states do not tell what that would come to.
    """
    scans = {n: scan for n, scan in enumerate(plan.checks) if isinstance(scan, Scan)}
    answers: list[dict[int, Any]] = [{} for _ in groups]
    carries: list[dict[int, Any]] = [{} for _ in groups]
    for number, scan in scans.items():
        carry: Any = None
        for index, part in enumerate(first):
            state = part[number]
            if state is None:
                continue
            answer = scan.shortcut(state, carry)
            if answer is None:
                carries[index][number] = carry
            else:
                answers[index][number] = answer
            carry = state if carry is None else scan.join(carry, state)
    asked = [index for index, wanted in enumerate(carries) if wanted]
    work = [(groups[index], carries[index]) for index in asked]
    reading = _Plan.reading(plan.checks, [name for scan in scans.values() for name in scan.columns])
    for index, reduced in zip(
        asked, run_all(spark, partial(_second_pass, reading), work), strict=True
    ):
        answers[index] |= reduced
    for answer in answers:
        for number, summary in answer.items():
            summaries[number].append(summary)


def _second_pass(plan: _Plan, work: tuple[RowGroup, dict[int, Any]]) -> dict[int, Any]:
    """What the scans say for which there is a carry."""
    group, carries = work
    all_rows = plan.read(group)
    summaries = {}
    for number, carry in carries.items():
        scan = plan.checks[number]
        assert isinstance(scan, Scan)
        summaries[number] = scan.reduce(_rows_for(scan, all_rows), carry)
    return summaries


@dataclass(slots=True)
class _KeyLocation:
    """Where a key's rows are."""

    first_row: int
    rows: int = 0
    groups: list[int] = field(default_factory=list)


def _key_locations(met: list[list[tuple[Key, int, int]] | None]) -> dict[Key, _KeyLocation]:
    """For each key that was met, in the order in which they were."""
    locations: dict[Key, _KeyLocation] = {}
    for index, keys in enumerate(met):
        for key, first_row, rows in keys or ():
            location = locations.setdefault(key, _KeyLocation(first_row))
            location.rows += rows
            location.groups.append(index)
    return locations


def _partitioned_summaries(
    checker: PartitionedCheck[Any],
    locations: dict[Key, _KeyLocation],
    groups: Sequence[RowGroup],
    spark: SparkContext | None,
) -> list[tuple[int, Key, Any]]:
    """Return (first row, key, summary) of each key."""
    running = [
        checker.divide(key, [groups[index] for index in location.groups])
        for key, location in locations.items()
    ]
    summaries = run_rounds(spark, running)
    return [
        (location.first_row, key, summary)
        for (key, location), summary in zip(locations.items(), summaries, strict=True)
    ]


def _bundles(
    number: int, groups: Sequence[RowGroup], locations: dict[Key, _KeyLocation]
) -> list[_Bundle]:
    """Put keys that lie in the same row groups together, so that their rows are read once."""
    together: dict[tuple[int, ...], list[Key]] = {}
    for key, location in locations.items():
        together.setdefault(tuple(location.groups), []).append(key)
    return [
        _Bundle(
            number,
            frozenset(keys[start : start + MAX_KEYS_PER_TASK]),
            tuple(groups[index] for index in indexes),
        )
        for indexes, keys in together.items()
        for start in range(0, len(keys), MAX_KEYS_PER_TASK)
    ]


def _check_bundle(plan: _Plan, bundle: _Bundle) -> list[tuple[int, Key, Any]]:
    """Return (first row, key, summary) of each key."""
    checker = plan.checks[bundle.check]
    assert isinstance(checker, Grouped)
    alone = _Plan.of([checker])
    segments = [_rows_for(checker, alone.read(group)) for group in bundle.groups]
    joined = Segment.joined(segments)
    return [
        (int(rows.rows[0]), key, checker.check(key, rows))
        for key, rows in joined.by(*checker.keys)
        if key in bundle.keys
    ]


def _finish(checker: Check, parts: list[Any]) -> list[Result]:
    """Combine what the tasks found, and turn it into one result per property."""
    if not parts:
        return [conclude(decided, checked=0) for decided in checker.properties()]
    if isinstance(checker, Grouped):
        ordered = sorted(parts, key=lambda part: part[0])
        answer = checker.finish([(key, summary) for _, key, summary in ordered])
    elif isinstance(checker, Fold | Scan):
        answer = checker.finish(reduce(checker.combine, parts))
    elif isinstance(checker, GlobalCheck):
        (answer,) = parts
    else:
        raise TypeError(f"{checker!r} is not of one of the shapes of a check")
    results = [answer] if isinstance(answer, Result) else list(answer)
    if sorted(result.property for result in results) != sorted(property_names(checker)):
        raise ValueError(f"{checker.name} must return one result for each of its properties")
    return results

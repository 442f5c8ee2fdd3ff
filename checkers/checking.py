"""Checking a history: run the checks, combine their verdicts, and have each finding explained.

The engine returns findings that hold row numbers. ``nemesis.checkers.explaining`` replaces the numbers by whole events
and adds the faults that were in force and the steps of the proof.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from nemesis.checkers.framework.engine import Engine, run_checks
from nemesis.checkers.framework.model import Outcome, Verdict, combine
from nemesis.checkers.framework.property import Check, Property, see_only
from nemesis.history.reader import History, open_history
from nemesis.history.sources import ALL_SOURCES, EventSource
from nemesis.history.spark import context


def check(
    history: Path | History,
    checkers: Sequence[Check],
    *,
    engine: Engine = "inline",
    spark_master: str | None = None,
    observed: Collection[EventSource] = ALL_SOURCES,
    keeps_unlisted: bool = False,
) -> Outcome:
    """Return what the checks make of a history (``history/`` of a run, or one already opened).

    ``observed`` are the history's sources, among them all that the checks' properties are decided from. The checks
    see no events of other sources: traces of some brokers alone would convict a correct cluster.
    ``keeps_unlisted``: whether findings beyond the first of a property are returned, too (``Result.unlisted``).

    Raises HistoryError when the history cannot be used. Whatever is wrong with its sources, short
    of that, is in ``Outcome.problems`` and makes the verdict ``unknown`` unless it is ``invalid``.
    """
    started = time.monotonic()
    opened = history if isinstance(history, History) else open_history(history)
    spark = context(spark_master) if engine == "spark" else None
    decided = {declared.name: declared for checker in checkers for declared in checker.properties()}
    for checker in checkers:
        see_only(checker, observed)
    checked = [
        result if keeps_unlisted else msgspec.structs.replace(result, unlisted=msgspec.UNSET)
        for result in run_checks(opened.row_groups, checkers, spark)
    ]
    if any(result.findings or result.unlisted for result in checked):
        # Imported here: explanations take as long to import as all that reads and judges a small history.
        from nemesis.checkers.explaining import explained

        checked = explained(opened, checked, _with_causes(decided, observed), spark)
    results = [
        msgspec.structs.replace(
            result, in_part_without=decided[result.property].incomplete_without(observed)
        )
        for result in checked
    ]
    verdicts = [result.verdict for result in results]
    verdicts += [Verdict.UNKNOWN] * len(opened.problems)
    return Outcome(
        verdict=combine(verdicts),
        results=tuple(results),
        events=opened.events,
        engine=engine,
        seconds=time.monotonic() - started,
        problems=opened.problems,
    )


def _with_causes(
    decided: Mapping[str, Property], observed: Collection[EventSource]
) -> Mapping[str, Property]:
    """Return the properties, without causes where brokers do not trace: there the steps of a recovery are not known."""
    if EventSource.TRACES in observed:
        return decided
    return {name: replace(declared, cause=None) for name, declared in decided.items()}

"""Runs of clusters in real processes are repeated for a busy machine, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nemesis.checkers.breaks.events import harness
from nemesis.checkers.liveness.unexplained import excuse
from tests.e2e.verdicts import doubts

LATE = (("harness-lag", 1_500), ("machine-load", 0))
LOADED = (("harness-lag", 0), ("machine-load", 700))
NOT_MEASURED = (("harness-lag", 0),)


def result(*reasons: str, verdict: str = "unknown", hidden: int = 0) -> dict[str, Any]:
    findings = [{"verdict": verdict, "sentence": reason} for reason in reasons]
    count = len(findings) + hidden
    return {"property": "p", "verdict": verdict, "findings": findings, "finding_count": count}


def reason(events: Sequence[tuple[str, int]]) -> str:
    rows = list(enumerate(harness(10, kind, duration_ms=ms) for kind, ms in events))
    why = excuse(rows, 0, 9, 500)
    assert why is not None
    return f"It took too long. But {why}."


@pytest.mark.parametrize("events", [LATE, LOADED])
def test_a_busy_machine_is_no_doubt(events: Sequence[tuple[str, int]]) -> None:
    assert doubts(result(reason(events))) == []


@pytest.mark.parametrize(
    "judged",
    [
        result(reason(LOADED), reason(NOT_MEASURED)),
        result(reason(LOADED), verdict="invalid"),
        result(reason(LOADED), hidden=1),
        result(),
        result("A fault was skipped."),
    ],
)
def test_each_other_reason_is_not(judged: dict[str, Any]) -> None:
    assert len(doubts(judged)) == 1


def test_valid_is_valid() -> None:
    assert doubts(result(verdict="valid")) == []

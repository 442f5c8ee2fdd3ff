"""Segments that are deleted too early, and those that a correct broker deletes."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.segment_deletions import COMPACTED, STARTED, bounds, deleted
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.segment_deletions import SegmentDeletions
from nemesis.history.events import Event
from tests.checkers.histories import only


def judged(*parts: Event | list[Event]) -> Result:
    return only(SegmentDeletions(), history(*parts))


def test_a_young_segment() -> None:
    result = judged(bounds(), STARTED, deleted(6))
    (finding,) = result.findings
    assert (finding.verdict, finding.key, result.checked) == (Verdict.INVALID, "t-0", 2)
    assert finding.sentence == (
        "Broker 1 deleted the segments of t-0 from offset 0 to 4, the last of which had a record that was 9 ms old. "
        "The log started at 0 and had 100 bytes behind them, the high watermark was 9; retention.ms is 10, "
        "retention.bytes is -1."
    )


def test_an_age_of_exactly_the_bound_is_not_enough() -> None:
    assert judged(bounds(), STARTED, deleted(5)).findings
    assert not judged(bounds(), STARTED, deleted(4)).findings


def test_what_is_not_committed_stays() -> None:
    assert judged(bounds(), STARTED, deleted(1, mark=4)).findings
    assert not judged(bounds(), STARTED, deleted(1, mark=5)).findings


@pytest.mark.parametrize(
    ("settings", "deletion"),
    [
        pytest.param(bounds(), deleted(6, start=5), id="below-the-start"),
        pytest.param(bounds(size=100), deleted(6), id="a-log-that-is-large-enough"),
        pytest.param(bounds(size=100), deleted(4, left=1), id="old-in-a-small-log"),
        pytest.param(bounds(), deleted(-1), id="without-a-time"),
        pytest.param([*bounds(), COMPACTED], deleted(6, start=5), id="compacted-below-the-start"),
        pytest.param([*bounds(), COMPACTED, COMPACTED], deleted(6), id="settings-that-changed"),
    ],
)
def test_what_a_correct_broker_deletes(settings: list[Event], deletion: Event) -> None:
    result = judged(settings, STARTED, deletion)
    assert (result.verdict, list(result.findings)) == (Verdict.VALID, [])


def test_without_settings_nothing_is_known() -> None:
    assert judged(STARTED, deleted(6)).verdict is Verdict.UNKNOWN

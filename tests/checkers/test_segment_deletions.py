"""Segments that are deleted too early, and those that a correct broker deletes."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import history, znode
from nemesis.checkers.breaks.segment_deletions import COMPACTED, STARTED, bounds, deleted
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.segment_deletions import SegmentDeletions
from nemesis.history.events import Event
from tests.checkers.histories import only

CREATED = znode(5, 10, "/brokers/topics/t", zk_op="create")
TORN = znode(11, 10, "/config/topics/t", zk_op="create", data="torn")
GONE = znode(12, 10, "/config/topics/t", zk_op="delete")


def written(zxid: int, age_ms: int) -> Event:
    """Return a write of the ``retention.ms`` of t."""
    data = f'{{"version":1,"config":{{"retention.ms":"{age_ms}"}}}}'
    return znode(zxid, 10, "/config/topics/t", data=data)


def reconfigured(name: str, value: str) -> Event:
    """Return a write of a setting of broker 1."""
    data = f'{{"version":1,"config":{{"{name}":"{value}"}}}}'
    return znode(20, 10, "/config/brokers/1", zk_op="create", data=data)


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
        pytest.param(
            [*bounds(), written(11, 99), written(12, 9)], deleted(5), id="one-of-two-ages"
        ),
        pytest.param(
            [*bounds(), CREATED, written(11, 99)], deleted(4), id="settings-first-written-later"
        ),
        pytest.param(
            [*bounds(), written(11, 99), GONE], deleted(4), id="deleted-with-its-settings"
        ),
        pytest.param(
            [*bounds(), reconfigured("log.retention.ms", "9")], deleted(5), id="brokers-age"
        ),
        pytest.param(
            [*bounds(), reconfigured("log.retention.bytes", "100")], deleted(6), id="brokers-size"
        ),
        pytest.param([*bounds(), TORN], deleted(6), id="settings-that-cannot-be-read"),
    ],
)
def test_what_a_correct_broker_deletes(settings: list[Event], deletion: Event) -> None:
    result = judged(settings, STARTED, deletion)
    assert (result.verdict, list(result.findings)) == (Verdict.VALID, [])


def test_no_settings_that_a_topic_had_allow_the_deletion() -> None:
    settings = [*bounds(), reconfigured("log.retention.ms", "0"), written(11, 99), written(12, 10)]
    (finding,) = judged(settings, STARTED, deleted(5)).findings
    assert finding.sentence.endswith("retention.ms is 99 or 10, retention.bytes is -1.")
    assert not judged(settings, STARTED, deleted(4)).findings


def test_without_settings_nothing_is_known() -> None:
    assert judged(STARTED, deleted(6)).verdict is Verdict.UNKNOWN

"""Logs that are dirty enough are compacted at the end: what a correct cleaner leaves is not held against it."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.compaction import BEGUN, cleaning, configured, dirty
from nemesis.checkers.breaks.events import (
    append,
    broker,
    high_watermark,
    history,
    loaded,
    truncate,
    znode,
)
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.breaks.retention import COMMITTED, GROWN, OPENED, ended
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.liveness.compaction import Compaction
from nemesis.history.events import Event
from tests.checkers.histories import only

OF_T: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}


def verdict(*parts: Event | list[Event]) -> Verdict:
    return only(Compaction(), history(*parts)).verdict


@pytest.mark.parametrize(("end", "is_late"), [(13, False), (14, True)])
def test_a_cleaner_has_two_back_offs(end: int, is_late: bool) -> None:
    """The log reached its second segment at 2 ms, and the back-off is 5 ms; both are known to the millisecond."""
    assert (verdict(*BEGUN, ended(end), dirty(0, 1)) is Verdict.INVALID) is is_late


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(dirty(0, 1, cleaned=1), id="compacted"),
        pytest.param(dirty(0), id="one-segment"),
        pytest.param(dirty(0, 3), id="the-last-segment-has-no-records-yet"),
    ],
)
def test_files_of_a_correct_broker(files: list[Event]) -> None:
    assert verdict(*BEGUN, ended(14), files) is Verdict.VALID


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(fault(3, 8), id="a-fault"),
        pytest.param([truncate(7, 1, 3)], id="truncated"),
        pytest.param([broker(7, 1, "become-follower", **OF_T)], id="no-longer-the-leader"),
    ],
)
def test_a_correct_broker(events: list[Event]) -> None:
    assert verdict(*BEGUN, events, ended(14), dirty(0, 1)) is Verdict.VALID


@pytest.mark.parametrize(
    "data",
    [
        '{"config":{}}',
        '{"config":{"cleanup.policy":"delete"}}',
        '{"config":{"cleanup.policy":"compact","min.cleanable.dirty.ratio":"0.9"}}',
        '{"config":{"cleanup.policy":"compact","min.compaction.lag.ms":"9"}}',
        "torn",
    ],
)
def test_topics_that_are_not_compacted_at_once(data: str) -> None:
    begun = (cleaning(), configured(data), *OPENED, GROWN, COMMITTED)
    assert verdict(*begun, ended(14), dirty(0, 1)) is Verdict.VALID


@pytest.mark.parametrize(("percentage", "is_late"), [(49, True), (50, False)])
def test_a_log_has_to_be_dirty_enough(percentage: int, is_late: bool) -> None:
    begun = (cleaning(percentage=percentage), configured(), *OPENED, GROWN, COMMITTED)
    decided = verdict(*begun, ended(14), dirty(0, 1, 2, cleaned=1))
    assert (decided is Verdict.INVALID) is is_late


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("log.cleaner.min.cleanable.ratio", Verdict.VALID),
        ("log.cleaner.min.compaction.lag.ms", Verdict.VALID),
        ("message.max.bytes", Verdict.INVALID),
    ],
)
def test_a_ratio_and_a_lag_of_brokers_may_be_changed(setting: str, expected: Verdict) -> None:
    data = f'{{"version":1,"config":{{"{setting}":"1"}}}}'
    changed = znode(7, 10, "/config/brokers/<default>", zk_op="create", data=data)
    assert verdict(*BEGUN, changed, ended(14), dirty(0, 1)) is expected


def test_a_topic_whose_policy_was_written_later() -> None:
    created = znode(0, 10, "/brokers/topics/t", zk_op="create")
    assert verdict(created, *BEGUN, ended(14), dirty(0, 1)) is Verdict.VALID


def test_a_cleaner_with_a_lag_is_not_judged() -> None:
    begun = (cleaning(lag_ms=1), configured(), *OPENED, GROWN, COMMITTED)
    assert verdict(*begun, ended(14), dirty(0, 1)) is Verdict.VALID


def test_nothing_is_decided_without_settings() -> None:
    assert verdict(*OPENED, GROWN, COMMITTED, ended(14), dirty(0, 1)) is Verdict.UNKNOWN


def opened(time: int, offset: int, *, node: int = 1) -> Event:
    return broker(time, node, "transaction-opened", offset=offset, producer_id=7, **OF_T)


def marker(time: int, offset: int, *, node: int = 1) -> Event:
    return broker(time, node, "marker-appended", offset=offset, producer_id=7, **OF_T)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([opened(2, 0)], Verdict.VALID, id="open-from-the-first-segment-on"),
        pytest.param([opened(2, 1)], Verdict.INVALID, id="open-behind-the-segment"),
        pytest.param([opened(2, 0, node=2)], Verdict.INVALID, id="open-in-another-log"),
        pytest.param([opened(2, 0), marker(3, 2)], Verdict.INVALID, id="ended"),
        pytest.param([opened(2, 0), marker(3, 3)], Verdict.VALID, id="marker-not-committed"),
        pytest.param([opened(2, 0), marker(7, 2)], Verdict.VALID, id="ended-too-late"),
    ],
)
def test_nothing_is_compacted_behind_the_last_stable_offset(
    events: list[Event], expected: Verdict
) -> None:
    assert verdict(*BEGUN, events, ended(14), dirty(0, 1)) is expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([opened(2, 0), loaded(4, 1, 0)], Verdict.INVALID, id="lost-with-its-log"),
        pytest.param([opened(2, 0), loaded(4, 1, 1)], Verdict.VALID, id="kept"),
        pytest.param(
            [opened(2, 0), marker(3, 1), loaded(4, 1, 1)], Verdict.VALID, id="marker-lost"
        ),
    ],
)
def test_a_transaction_of_the_process_before(events: list[Event], expected: Verdict) -> None:
    """The log is opened again, grows and is committed as in ``BEGUN``."""
    later = [append(5, 1, 1, offset, role="leader") for offset in range(3)]
    files = dirty(0, 1)
    again = [*later, high_watermark(5, 1, 1, 3, [1])]
    assert verdict(cleaning(), configured(), events, again, ended(20), files) is expected

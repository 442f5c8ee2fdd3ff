"""Segments that are to go are gone at the end: what a correct broker keeps is not held against it."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import (
    append,
    broker,
    harness,
    high_watermark,
    history,
    loaded,
    log_start,
    started,
    truncate,
    znode,
)
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.checkers.breaks.retention import (
    BEGUN,
    COMMITTED,
    GROWN,
    OPENED,
    ended,
    retained,
    stored,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.retention import Retention
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import RETENTION_MS
from tests.checkers.histories import only

SEGMENTS = (0, 1, 2)
DUE_MS = 8
"""The log reached its third segment in the millisecond from 2 ms on, and the interval is 5 ms."""
NO_RETENTION = (retained(retention_bytes=-1), *OPENED, GROWN)


def judged(*parts: Event | list[Event]) -> Result:
    return only(Retention(), history(*parts))


def verdict(*parts: Event | list[Event]) -> Verdict:
    return judged(*parts).verdict


def configured(data: str, op: str = "create") -> Event:
    """Return a write of the settings of topic t."""
    return znode(1, 10, "/config/topics/t", zk_op=op, data=f'{{"version":1,"config":{data}}}')


def reconfigured(data: str) -> Event:
    """Return a write of the settings of all brokers."""
    return znode(7, 10, "/config/brokers/<default>", data=f'{{"version":1,"config":{data}}}')


CREATED, CREATED_LATER = (znode(zxid, 10, "/brokers/topics/t", zk_op="create") for zxid in (0, 1))


def test_a_log_that_is_large_enough_without_its_first_segment() -> None:
    result = judged(*BEGUN, ended(9), stored(*SEGMENTS))
    (finding,) = result.findings
    assert (finding.verdict, finding.key, result.checked) == (Verdict.INVALID, "t-0", 1)
    assert finding.sentence == (
        "Broker 1 kept the segment of t-0 from offset 0 to 0 for 6 ms, though the log had 10 bytes behind it, and "
        "retention.bytes is 10. It looks every 5 ms."
    )


def test_a_log_that_begins_behind_its_first_segment() -> None:
    start = log_start(2, 1, 1, 3, high_watermark=1)
    result = judged(*NO_RETENTION, start, ended(9), stored(*SEGMENTS))
    (finding,) = result.findings
    assert finding.sentence == (
        "Broker 1 kept the segment of t-0 from offset 0 to 0 for 7 ms, though the log had begun at 1. It looks every "
        "5 ms."
    )


@pytest.mark.parametrize(("end", "is_late"), [(DUE_MS, False), (DUE_MS + 1, True)])
def test_a_broker_looks_once_in_each_interval(end: int, is_late: bool) -> None:
    decided = verdict(*BEGUN, ended(end), stored(*SEGMENTS))
    assert (decided is Verdict.INVALID) is is_late


def test_a_follower_is_judged_by_the_start_of_its_log() -> None:
    copied = [append(2, 1, 1, offset) for offset in range(3)]
    start = log_start(2, 1, 1, 3, high_watermark=1)
    follower = (retained(), *OPENED, copied)
    assert verdict(*follower, start, ended(9), stored(*SEGMENTS)) is Verdict.INVALID
    assert verdict(*follower, ended(9), stored(*SEGMENTS)) is Verdict.VALID


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(stored(1, 2), id="deleted"),
        pytest.param(stored(0, 1), id="the-last-segment-does-not-count"),
        pytest.param(stored(*SEGMENTS, size=9), id="too-small-without-it"),
        pytest.param(stored(*SEGMENTS, error="torn"), id="damaged"),
    ],
)
def test_files_of_a_correct_broker(files: list[Event]) -> None:
    assert judged(*BEGUN, ended(9), files).findings == ()


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([high_watermark(2, 1, 1, 1, [1])], id="committed"),
        pytest.param([high_watermark(5, 1, 1, 1, [1])], id="committed-late"),
        pytest.param([], id="not-known-to-be-committed"),
    ],
)
def test_only_what_is_committed_is_deleted(events: list[Event]) -> None:
    late = [event for event in events if event.time == 2]
    decided = verdict(retained(), *OPENED, GROWN, events, ended(9), stored(*SEGMENTS))
    assert decided is (Verdict.INVALID if late else Verdict.VALID)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(fault(3, 8), id="a-fault"),
        pytest.param(fault(3, 4, effect="none"), id="an-end-not-verified"),
        pytest.param([truncate(7, 1, 3)], id="truncated"),
        pytest.param(
            [broker(7, 1, "log-dir-changed", topic="t", topic_id="id", partition=0)], id="moved"
        ),
        pytest.param([configured('{"cleanup.policy":"compact"}')], id="compacted"),
        pytest.param([configured('{"cleanup.policy":"compact,delete"}')], id="both"),
        pytest.param([configured('{"retention.bytes":"11"}')], id="its-own-retention"),
        pytest.param([configured('{"retention.bytes":"-1"}')], id="without-bound"),
        pytest.param([configured("{}"), configured("{}", "setData")], id="written-twice"),
        pytest.param([configured("torn")], id="not-readable"),
        pytest.param(
            [configured("{}"), configured("{}", "delete")], id="deleted-with-its-settings"
        ),
        pytest.param([CREATED, configured("{}")], id="first-written-later"),
        pytest.param([reconfigured('{"log.retention.bytes":"-1"}')], id="the-brokers-retention"),
        pytest.param([reconfigured('{"log.cleanup.policy":"compact"}')], id="the-brokers-policy"),
    ],
)
def test_a_correct_broker(events: list[Event]) -> None:
    assert verdict(*BEGUN, events, ended(9), stored(*SEGMENTS)) is Verdict.VALID


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([configured('{"retention.bytes":"10"}'), CREATED_LATER], id="created-later"),
        pytest.param(
            [
                configured('{"retention.bytes":"10","cleanup.policy":"delete"}'),
                reconfigured('{"log.retention.bytes":"-1","log.cleanup.policy":"compact"}'),
            ],
            id="its-own-before-the-brokers",
        ),
        pytest.param([reconfigured('{"message.max.bytes":"100"}')], id="another-setting"),
    ],
)
def test_settings_that_counted_in_the_whole_run(events: list[Event]) -> None:
    assert verdict(*BEGUN, events, ended(9), stored(*SEGMENTS)) is Verdict.INVALID


def test_an_age_that_the_brokers_had_not_always() -> None:
    bound = harness(0, "broker-property", setting=RETENTION_MS, count=10)
    end = [*measured(18), harness(18, "phase", phase="end", wall_ms=18)]
    parts: list[Event | list[Event]] = [
        bound,
        *NO_RETENTION,
        COMMITTED,
        end,
        stored(*SEGMENTS, newest=2),
    ]
    assert verdict(*parts) is Verdict.INVALID
    assert verdict(*parts, reconfigured('{"log.retention.ms":"99"}')) is Verdict.VALID


def aged(wall_ms: int, *, newest: int, retention_ms: int = 10) -> Result:
    """Judge a log whose segments have this newest record, at a time of day 18 ms after the start."""
    bound = harness(0, "broker-property", setting=RETENTION_MS, count=retention_ms)
    end = [*measured(18), harness(18, "phase", phase="end", wall_ms=wall_ms)]
    return judged(bound, *NO_RETENTION, COMMITTED, end, stored(*SEGMENTS, newest=newest))


def test_a_segment_that_is_too_old() -> None:
    (finding,) = aged(1_018, newest=1_002).findings
    assert finding.sentence == (
        "Broker 1 kept the segment of t-0 from offset 0 to 0 for 6 ms, though its newest record was 16 ms old at the "
        "end, and retention.ms is 10. It looks every 5 ms."
    )
    assert not aged(1_018, newest=1_003).findings
    assert not aged(1_018, newest=-1).findings
    assert not aged(1_018, newest=1_002, retention_ms=-1).findings


def test_the_retention_of_the_topic_comes_before_that_of_the_broker() -> None:
    own = configured('{"retention.bytes":"10"}')
    large = (retained(retention_bytes=1000), *OPENED, GROWN, COMMITTED)
    assert verdict(*large, own, ended(9), stored(*SEGMENTS)) is Verdict.INVALID
    assert verdict(*large, ended(9), stored(*SEGMENTS)) is Verdict.VALID


def test_a_log_that_was_opened_as_it_is_now() -> None:
    known = {"log_start_offset": 0, "high_watermark": 3}
    again = [started(3, 1, unclean=False), loaded(4, 1, 3, **known)]
    assert verdict(retained(), again, ended(9), stored(*SEGMENTS)) is Verdict.VALID
    assert verdict(retained(), again, ended(10), stored(*SEGMENTS)) is Verdict.INVALID


def test_a_log_that_was_not_opened_since_the_broker_started_is_not_judged() -> None:
    again = started(7, 1, unclean=False)
    assert judged(*BEGUN, again, ended(9), stored(*SEGMENTS)).checked == 0


def test_a_dead_broker_deletes_nothing() -> None:
    assert verdict(*BEGUN, ended(9), stored(*SEGMENTS, alive=False)) is Verdict.UNKNOWN


def test_a_slow_machine_is_not_a_broker_that_keeps_segments() -> None:
    late = (*BEGUN, stored(*SEGMENTS))
    assert verdict(*late, ended(200, load=192)) is Verdict.UNKNOWN
    assert verdict(*late, ended(200, load=100)) is Verdict.INVALID
    assert verdict(*late, ended(50, load=50)) is Verdict.VALID
    quiet = harness(200, "phase", phase="end")
    assert verdict(*late, measured(200, lag=101), quiet) is Verdict.UNKNOWN


def test_nothing_is_decided_without_settings_or_without_an_end() -> None:
    assert verdict(*OPENED, GROWN, COMMITTED, ended(9), stored(*SEGMENTS)) is Verdict.UNKNOWN
    assert verdict(*BEGUN, measured(9), stored(*SEGMENTS)) is Verdict.UNKNOWN

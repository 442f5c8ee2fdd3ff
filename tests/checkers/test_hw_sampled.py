"""Sampled high watermarks: what contradicts one, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.events import harness, history
from nemesis.checkers.breaks.hw_sampled import sample
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.replication.hw_sampled import DISK_FAULTS, HW_SAMPLED, HwSampled
from nemesis.history.events import Event
from tests.checkers.histories import only

MARK = sample(1, 1, high_watermark=5)


def judged(*samples: Event) -> Result:
    return only(HwSampled(), history(*samples), HW_SAMPLED.name)


def test_a_member_of_the_isr_has_what_the_leader_answered() -> None:
    result = judged(MARK, sample(2, 2, log_end_offset=5), sample(3, 1, high_watermark=5))
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)


def test_an_end_that_was_answered_before_the_high_watermark_shows_nothing() -> None:
    early = sample(0, 2, log_end_offset=4)
    assert judged(early, MARK, sample(2, 2, log_end_offset=5)).verdict is Verdict.VALID


@pytest.mark.parametrize(
    "other",
    [{"leader_epoch": 2}, {"broker_epoch": 8}, {"topic_id": "next"}, {"partition": 1}],
    ids=["epoch", "incarnation", "topic", "partition"],
)
def test_another_term_begins_anew(other: dict[str, Any]) -> None:
    assert not judged(MARK, sample(2, 2, log_end_offset=4, **other)).findings
    assert not judged(MARK, sample(2, 1, high_watermark=4, **other)).findings


def test_a_replica_outside_of_the_isr_may_lack_records() -> None:
    assert not judged(MARK, sample(2, 2, log_end_offset=4, isr=[1])).findings


def test_the_highest_mark_counts() -> None:
    result = judged(sample(0, 1, high_watermark=3), MARK, sample(2, 2, log_end_offset=4))
    assert result.findings[0].sentence == (
        "Leader 1 of t-0 answered the high watermark 5; later broker 2, in its ISR, answered that its log ends at 4."
    )


def test_each_replica_is_convicted_once() -> None:
    late = [sample(time, 2, log_end_offset=time) for time in (2, 3, 4)]
    assert len(judged(MARK, *late, sample(5, 1, high_watermark=4)).findings) == 2


@pytest.mark.parametrize("fault", sorted(DISK_FAULTS))
def test_once_a_disk_may_have_lost_something_nothing_is_judged(fault: str) -> None:
    late = sample(3, 2, log_end_offset=4)
    assert not judged(MARK, harness(2, "fault-invoke", fault=fault), late).findings
    assert judged(MARK, late, harness(4, "fault-invoke", fault=fault)).findings


def test_without_a_sample_after_a_high_watermark_nothing_is_known() -> None:
    assert judged(sample(2, 2, log_end_offset=4)).verdict is Verdict.UNKNOWN
    assert judged(MARK).verdict is Verdict.UNKNOWN

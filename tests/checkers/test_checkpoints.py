"""Checkpoints are as old as their intervals at most: what a correct broker leaves is not held against it."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.checkpoints import BEGUN, checkpointed, intervals
from nemesis.checkers.breaks.events import broker, history, loaded, log_start, started
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.breaks.retention import GROWN, OPENED, ended
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.liveness.checkpoints import Checkpoints
from nemesis.history.events import Event
from tests.checkers.histories import only

OF_T: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}


def verdict(*parts: Event | list[Event]) -> Verdict:
    return only(Checkpoints(), history(*parts)).verdict


@pytest.mark.parametrize(("end", "is_late"), [(7, False), (8, True)])
def test_a_mark_is_as_old_as_its_interval(end: int, is_late: bool) -> None:
    assert (verdict(*BEGUN, ended(end), checkpointed(0, mark=2)) is Verdict.INVALID) is is_late


@pytest.mark.parametrize("mark", [3, 4])
def test_a_mark_that_is_not_older(mark: int) -> None:
    assert verdict(*BEGUN, ended(9), checkpointed(0, mark=mark)) is Verdict.VALID


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(fault(3, 8), id="a-fault"),
        pytest.param([broker(3, 1, "become-follower", **OF_T)], id="no-longer-the-leader"),
        pytest.param([broker(3, 1, "replica-stopped", **OF_T)], id="stopped"),
        pytest.param([started(3, 1, unclean=False), loaded(4, 1, 3)], id="another-process"),
    ],
)
def test_a_correct_broker(events: list[Event]) -> None:
    assert verdict(*BEGUN, events, ended(9), checkpointed(0, mark=2)) is Verdict.VALID


def test_starts_of_logs() -> None:
    moved = log_start(2, 1, 2, 3, high_watermark=3)
    late = log_start(7, 1, 3, 3, high_watermark=3)
    assert verdict(*BEGUN, moved, ended(9), checkpointed(0, start=1)) is Verdict.INVALID
    assert verdict(*BEGUN, moved, late, ended(9), checkpointed(0, start=2)) is Verdict.VALID


def test_recovery_points() -> None:
    assert verdict(*BEGUN, ended(9), checkpointed(0, 2, point=1)) is Verdict.INVALID
    assert verdict(*BEGUN, ended(9), checkpointed(0, 2, point=2)) is Verdict.VALID
    assert verdict(*BEGUN, ended(8), checkpointed(0, 2, point=0)) is Verdict.VALID


def test_a_segment_that_an_earlier_process_began() -> None:
    opened = (intervals(), started(0, 1, unclean=False), loaded(1, 1, 2), GROWN)
    assert verdict(*opened, ended(9), checkpointed(0, 2)) is Verdict.VALID
    assert verdict(intervals(), *OPENED, GROWN, ended(9), checkpointed(0, 2)) is Verdict.INVALID


def test_nothing_is_decided_without_intervals_or_of_a_dead_broker() -> None:
    assert verdict(*BEGUN[1:], ended(9), checkpointed(0, mark=2)) is Verdict.UNKNOWN

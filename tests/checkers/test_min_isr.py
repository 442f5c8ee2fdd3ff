"""How many in-sync replicas an acknowledgement has behind it."""

from __future__ import annotations

from typing import Any

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import (
    acknowledged,
    become_leader,
    broker,
    high_watermark,
    history,
)
from nemesis.history.events import Event
from tests.checkers.histories import only

TWO: dict[str, Any] = {"min_insync_replicas": 2, "unclean_leader_election_enable": False}
STARTED = broker(0, 1, "broker-started", **TWO)


def sentences(*events: Event) -> list[str]:
    result = only(CHECKERS["min-isr-behind-ack"].check(), history(*events))
    return [finding.sentence for finding in result.findings]


def test_an_isr_that_shrinks_after_the_commit_was_large_enough() -> None:
    assert (
        sentences(STARTED, high_watermark(1, 1, 0, 8, [1, 2]), acknowledged(2, 1, 0, 7, isr=[1]))
        == []
    )


def test_a_high_watermark_that_comes_later_excuses_nothing() -> None:
    alone, later = acknowledged(1, 1, 0, 7, isr=[1]), high_watermark(2, 1, 0, 8, [1, 2])
    assert len(sentences(STARTED, alone, later)) == 1


def test_the_highest_acknowledged_offset_is_the_one_that_is_shown() -> None:
    acks = [acknowledged(time, 1, 0, offset, isr=[1]) for time, offset in ((1, 3), (2, 9), (3, 5))]
    (sentence,) = sentences(STARTED, *acks)
    assert sentence.startswith("Leader 1 acknowledged offset 9 of t-0")


def test_a_partition_of_one_replica_needs_one() -> None:
    led = become_leader(1, 1, 0, 0, replicas=[1])
    assert sentences(STARTED, led, acknowledged(2, 1, 0, 7, isr=[1])) == []


def test_the_smallest_setting_of_a_process_counts() -> None:
    changed = broker(1, 1, "broker-reconfigured", **TWO | {"min_insync_replicas": 1})
    assert sentences(STARTED, changed, acknowledged(2, 1, 0, 7, isr=[1])) == []


def test_other_acks_promise_nothing() -> None:
    alone = acknowledged(2, 1, 0, 7, isr=[1], acks=1)
    enough = acknowledged(3, 1, 0, 8, isr=[1, 2])
    assert sentences(STARTED, alone, enough) == []


def test_what_is_configured_is_not_known() -> None:
    assert sentences(acknowledged(2, 1, 0, 7, isr=[1])) == []

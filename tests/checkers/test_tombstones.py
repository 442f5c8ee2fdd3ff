"""Tombstones that files lack, and delete horizons that follow from no compaction."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from nemesis.checkers.breaks.events import TP, harness, history, loaded, send, truncate, znode
from nemesis.checkers.breaks.tombstones import CONFIGURED, compacted, files, tombstone
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.tombstones import Tombstones
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import DELETE_RETENTION
from tests.checkers.histories import only

Parts = Event | list[Event]
EARLY = (tombstone(2, 7), compacted(4, 20), compacted(9, 29), files(1))
"""The tombstone at offset 0 is gone 1 ms before its delete horizon."""
SET = (tombstone(2, 7), compacted(4, 20))


def verdict(*parts: Parts, configured: tuple[Event, ...] = CONFIGURED) -> Verdict:
    return only(Tombstones(), history(*configured, *parts)).verdict


def judged(*parts: Parts, configured: tuple[Event, ...] = CONFIGURED) -> float:
    """The number of tombstones and delete horizons that are judged."""
    return only(Tombstones(), history(*configured, *parts)).numbers["judged"]


def keyed(time: int, value: int, outcome: str = "ok", **columns: Any) -> list[Event]:
    events = send(time, value, outcome, **columns)
    for event in events:
        event.key = 1
    return events


class TestTombstones:
    def test_a_tombstone_is_gone_before_its_horizon(self) -> None:
        judged = only(Tombstones(), history(*CONFIGURED, *EARLY))
        (item,) = judged.findings
        assert item.sentence == (
            "The files of broker 1 lack the tombstone at offset 0 of t-0, the last record of its key: the compactions "
            "that passed it began within 9 ms, and delete.retention.ms is 10."
        )

    def test_it_may_go_at_its_horizon(self) -> None:
        assert verdict(tombstone(2, 7), compacted(4, 20), compacted(9, 30), files(1)) == "valid"

    def test_another_broker_may_have_set_the_horizon(self) -> None:
        later = compacted(9, 30, node=2)
        assert verdict(tombstone(2, 7), compacted(4, 20), later, files(1, node=2)) == "valid"

    def test_the_clock_of_the_brokers_decides(self) -> None:
        """A wall clock that a fault moves ahead takes the tombstone, one that it moves back keeps it."""
        moved = (tombstone(2, 7), compacted(4, 20), compacted(5, 500), files(1))
        assert verdict(*moved) == "valid"
        back = (tombstone(2, 7), compacted(4, 500), compacted(60, 20), files(1))
        assert verdict(*back) == "invalid"

    def test_a_compaction_before_the_send_passes_nothing(self) -> None:
        assert verdict(compacted(1, 2), tombstone(2, 7), compacted(4, 20), files(1)) == "invalid"

    def test_a_compaction_of_other_segments_passes_nothing(self) -> None:
        beside = replace(compacted(9, 40), offset=1, last_offset=1)
        assert verdict(tombstone(2, 7), compacted(4, 20), beside, files(1)) == "invalid"

    def test_a_later_send_of_the_key_may_supersede_it(self) -> None:
        for later in (keyed(5, 8, offset=1), keyed(5, 8, "info"), keyed(5, 8, acks=0)):
            assert verdict(*EARLY, later) != "invalid"
        assert verdict(*EARLY, keyed(5, 8, "fail")) == "invalid"

    def test_an_earlier_send_of_the_key_does_not(self) -> None:
        later = tombstone(2, 7, offset=1)
        gone = (keyed(1, 6, offset=0), later, compacted(4, 20, last=1), files(0))
        assert verdict(*gone) == "invalid"

    def test_other_records_may_not_be_judged_by_a_horizon(self) -> None:
        assert judged(keyed(2, 7, offset=0), compacted(4, 20), files(1)) == 0

    def test_what_a_replica_may_have_lost_proves_nothing(self) -> None:
        assert verdict(*EARLY, truncate(6, 2, 0)) != "invalid"
        assert verdict(*EARLY, loaded(6, 2, 0)) != "invalid"
        assert verdict(*EARLY, loaded(6, 2, 1)) == "invalid"

    def test_files_that_end_before_it_or_begin_after_it_prove_nothing(self) -> None:
        assert verdict(*EARLY[:3], files(end=0)) != "invalid"
        begun = files(1)
        begun[0].log_start_offset = 1
        assert verdict(*EARLY[:3], begun) != "invalid"
        damaged = files(1)
        damaged[0].error = "damaged"
        assert verdict(*EARLY[:3], damaged) != "invalid"

    def test_two_topics_of_one_name_are_left_out(self) -> None:
        again = [replace(event, topic_id="other") for event in keyed(5, 8, offset=0)]
        assert verdict(*EARLY, again) != "invalid"


class TestHorizons:
    def test_a_horizon_of_a_compaction(self) -> None:
        assert verdict(*SET, files(0, horizon_ms=30)) == "valid"

    def test_a_horizon_of_no_compaction(self) -> None:
        for horizon_ms in (20, 29, 31, 300):
            assert verdict(*SET, files(0, horizon_ms=horizon_ms)) == "invalid"

    def test_the_topic_has_a_bound_of_its_own(self) -> None:
        own = znode(1, 10, "/config/topics/t", data='{"config":{"delete.retention.ms":"3"}}')
        configured = (CONFIGURED[0], own)
        assert verdict(*SET, files(0, horizon_ms=23), configured=configured) == "valid"
        assert verdict(*SET, files(0, horizon_ms=30), configured=configured) == "invalid"

    def test_settings_that_changed_decide_nothing(self) -> None:
        wrong = (*SET, files(0, horizon_ms=29))
        twice = (*CONFIGURED, CONFIGURED[1])
        brokers = znode(
            2, 10, "/config/brokers/1", data=f'{{"config":{{"{DELETE_RETENTION}":"1"}}}}'
        )
        for configured in (twice, (*CONFIGURED, brokers), CONFIGURED[1:]):
            assert judged(*wrong, configured=configured) == 0


def test_without_a_log_it_is_unknown() -> None:
    stored = harness(90, "stored-log", alive=True, error="NONE", log_start_offset=0, node=1, **TP)
    assert verdict(stored) == "valid"
    assert judged(stored) == 0
    assert verdict() == "unknown"

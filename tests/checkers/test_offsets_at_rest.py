"""What replicas answer when nothing happens any more."""

from __future__ import annotations

from typing import Any

from nemesis.checkers.breaks.events import (
    TP,
    become_leader,
    broker,
    client,
    harness,
    history,
)
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.checkers.breaks.offsets_at_rest import END, deleted, replica, waits
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.offsets_at_rest import OFFSETS_AT_REST, OffsetsAtRest
from nemesis.checkers.liveness.rest_bound import rest_bound_ms
from nemesis.history.events import Event
from tests.checkers.histories import only


def judged(*parts: Event | list[Event]) -> Result:
    return only(OffsetsAtRest(), history(*parts), OFFSETS_AT_REST.name)


def at_rest(*replicas: Event) -> Result:
    return judged(waits(), list(replicas), measured(END + 1))


def follower(mark: int, **columns: Any) -> Event:
    return replica(2, mark, **columns)


def test_replicas_that_agree() -> None:
    result = at_rest(replica(1, 5), follower(5))
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)


def test_a_run_without_partitions_had_nothing_to_agree_on() -> None:
    listed = harness(END, "replica-offsets", error="NONE", count=0)
    assert judged(listed).verdict is Verdict.VALID


def test_a_follower_that_has_not_heard_of_the_last_high_watermark() -> None:
    assert at_rest(replica(1, 5), follower(4)).verdict is Verdict.INVALID


def test_a_follower_within_its_time() -> None:
    """The bound is 5 ms."""
    result = at_rest(replica(1, 5, unchanged=5), follower(4, unchanged=5))
    assert result.verdict is Verdict.UNKNOWN
    assert "only 5 ms" in result.findings[0].sentence


def test_a_follower_on_a_slow_machine() -> None:
    late = [replica(1, 5), follower(4)]
    assert judged(waits(), late, measured(END + 1, load=1)).verdict is Verdict.UNKNOWN
    assert judged(waits(), late, measured(END + 1, lag=101)).verdict is Verdict.UNKNOWN
    assert judged(waits(), late).verdict is Verdict.UNKNOWN


def test_a_follower_under_a_fault() -> None:
    late = [replica(1, 5), follower(4), *measured(END + 1)]
    assert judged(waits(), fault(1, END - 7), late).verdict is Verdict.INVALID
    assert judged(waits(), fault(1, END - 6), late).verdict is Verdict.UNKNOWN
    assert judged(waits(), fault(1, 2, effect="none"), late).verdict is Verdict.UNKNOWN


def test_a_run_that_does_not_state_its_time_outs() -> None:
    assert judged(replica(1, 5), follower(4), measured(END + 1)).verdict is Verdict.UNKNOWN


def test_a_replica_that_is_not_in_sync_may_lag() -> None:
    outside: dict[str, Any] = {"isr": [1]}
    result = at_rest(replica(1, 5, **outside), follower(3, end=3, **outside))
    assert result.verdict is Verdict.VALID


def test_a_high_watermark_that_a_replica_holds_back() -> None:
    """The leader's stays below the end of its log while not all replicas are in the ISR, or end there."""
    outside: dict[str, Any] = {"isr": [1]}
    assert at_rest(replica(1, 4, **outside), follower(4, **outside)).verdict is Verdict.VALID
    assert at_rest(replica(1, 4), follower(4, end=4)).verdict is Verdict.VALID


def test_a_leader_whose_high_watermark_stays_behind() -> None:
    assert at_rest(replica(1, 4), follower(4)).verdict is Verdict.INVALID


def test_a_member_of_the_isr_that_does_not_answer() -> None:
    silent: dict[str, Any] = {
        "error": "CLIENT_TIMED_OUT",
        "log_start_offset": None,
        "high_watermark": None,
        "log_end_offset": None,
    }
    assert at_rest(replica(1, 5), follower(5, **silent)).verdict is Verdict.UNKNOWN
    outside: dict[str, Any] = {"isr": [1]}
    result = at_rest(replica(1, 5, **outside), follower(5, **silent | outside))
    assert result.verdict is Verdict.VALID


def test_a_follower_may_start_above_its_leader_but_not_below() -> None:
    """Each replica deletes old segments by itself."""
    assert at_rest(replica(1, 5), follower(5, start=3)).verdict is Verdict.VALID
    assert at_rest(replica(1, 5, start=3), follower(5)).verdict is Verdict.INVALID


def test_offsets_of_one_replica_that_cannot_be() -> None:
    for mark, start, end in (6, 0, 5), (2, 3, 5):
        assert judged(replica(1, mark, start=start, end=end)).verdict is Verdict.INVALID
    assert judged(replica(1, 5, start=5, end=5)).verdict is Verdict.VALID


def test_what_a_leader_answered_to_delete_records_stays_deleted() -> None:
    led = become_leader(1, 1, 1, 5)
    assert judged(led, deleted(2, 1, 3), replica(1, 5, start=3)).verdict is Verdict.VALID
    result = judged(led, deleted(2, 1, 3), deleted(4, 1, 1), replica(1, 5, start=2))
    assert result.verdict is Verdict.INVALID
    assert "below 3" in result.findings[0].sentence


def test_what_was_answered_before_the_last_leadership_is_not_held_against_it() -> None:
    """The log start is checkpointed now and then: an unclean restart may lower it."""
    lower = replica(1, 5, start=2)
    again = become_leader(5, 1, 1, 5)
    assert (
        judged(become_leader(1, 1, 1, 5), deleted(2, 1, 3), again, lower).verdict is Verdict.VALID
    )
    assert judged(become_leader(2, 1, 1, 5), deleted(2, 1, 3), lower).verdict is Verdict.VALID
    assert judged(become_leader(1, 2, 0, 5), deleted(2, 2, 3), lower).verdict is Verdict.VALID
    assert judged(become_leader(1, 1, 0, 5), deleted(2, 1, 3), lower).verdict is Verdict.VALID


def test_an_answer_of_a_broker_that_is_not_known() -> None:
    answer = client(3, "admin-0", "ok", "delete-records", 2, offset=3, log_start_offset=3)
    asked = client(2, "admin-0", "invoke", "delete-records", 2, offset=3)
    result = judged(become_leader(1, 1, 1, 5), asked, answer, replica(1, 5, start=2))
    assert result.verdict is Verdict.VALID


def test_a_log_that_was_moved_to_another_directory_may_start_lower() -> None:
    moved = broker(4, 1, "log-dir-changed", log_dir="b", **TP)
    result = judged(become_leader(1, 1, 1, 5), deleted(2, 1, 3), moved, replica(1, 5, start=2))
    assert result.verdict is Verdict.VALID


def test_zookeeper_that_did_not_answer() -> None:
    blind = harness(END, "replica-offsets", error="ZooKeeper does not answer the harness")
    assert judged(blind).verdict is Verdict.UNKNOWN


def test_the_bound_needs_every_setting() -> None:
    settings = {
        "replica.socket.timeout.ms": 2_000,
        "replica.fetch.backoff.ms": 100,
        "replica.fetch.wait.max.ms": 500,
    }
    assert rest_bound_ms(settings) == 3_100
    for name in settings:
        assert rest_bound_ms({**settings, name: 1}) != 3_100
        assert rest_bound_ms({other: ms for other, ms in settings.items() if other != name}) is None

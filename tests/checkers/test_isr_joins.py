"""Who may join an ISR, judged by the ends that the replicas traced."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import (
    append,
    become_leader,
    broker,
    high_watermark,
    history,
    loaded,
    started,
    truncate,
)
from nemesis.checkers.breaks.isr_joins import follows, proposed
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "isr-join-caught-up"
LEADS = become_leader(1, 1, 2, 5)


def judged(*events: Event) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def test_a_replica_at_the_start_of_the_epoch_joins() -> None:
    result = judged(LEADS, follows(2, 2, 2, 5), proposed(3, 1, 2, [1], 2))
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)


def test_a_fetch_under_way_states_what_its_sender_had_before_a_truncation() -> None:
    reached = append(3, 2, 1, 4)
    assert (
        judged(
            LEADS,
            follows(2, 2, 2, 4),
            reached,
            truncate(4, 2, 2, leader_epoch=3),
            proposed(5, 1, 2, [1], 2),
        ).findings
        == ()
    )


def test_what_is_truncated_in_the_same_leader_epoch_never_counted() -> None:
    before = [LEADS, follows(2, 2, 2, 7)]
    joins, cut = proposed(3, 1, 2, [1], 2), truncate(4, 2, 4, leader_epoch=2)
    [late] = judged(*before, joins, cut).findings
    assert late.sentence == (
        "Leader 1 of t-0 proposed broker 2 for the ISR in leader epoch 2: its epoch began at 5, and the broker's log "
        "had reached 7, with other records than the leader's: in that leader epoch the broker truncated it to 4."
    )
    assert [event["kind"] for event in late.events] == [
        "become-leader",
        "become-follower",
        "isr-change-proposed",
        "truncate",
    ]
    [early] = judged(*before, cut, proposed(5, 1, 2, [1], 2)).findings
    assert "reached 4 at most" in early.sentence


def test_a_truncation_that_leaves_what_is_needed_refutes_nothing() -> None:
    events = [LEADS, follows(2, 2, 2, 7), proposed(3, 1, 2, [1], 2)]
    assert judged(*events, truncate(4, 2, 5, leader_epoch=2)).findings == ()


def test_what_is_reached_after_a_truncation_counts() -> None:
    events = [LEADS, follows(2, 2, 2, 7), truncate(3, 2, 4, leader_epoch=2), append(4, 2, 2, 4)]
    assert judged(*events, proposed(5, 1, 2, [1], 2)).findings == ()


def test_a_leader_that_starts_again_may_have_lost_what_its_follower_truncates() -> None:
    events = [LEADS, follows(2, 2, 2, 7), proposed(3, 1, 2, [1], 2)]
    again = become_leader(4, 1, 2, 4, incarnation=2)
    assert judged(*events, again, truncate(5, 2, 4, leader_epoch=2)).findings == ()


def test_a_log_that_is_opened_later_says_nothing_of_the_one_before() -> None:
    events = [LEADS, follows(2, 2, 2, 7), proposed(3, 1, 2, [1], 2)]
    again = [loaded(4, 2, 0), follows(5, 2, 2, 0), truncate(6, 2, 3, leader_epoch=2)]
    assert judged(*events, *again).findings == ()


def test_a_fetch_of_an_earlier_process_may_have_proved_it() -> None:
    first = [LEADS, follows(2, 2, 2, 7), loaded(3, 2, 7, incarnation=2)]
    again = [follows(4, 2, 2, 7, incarnation=2), proposed(5, 1, 2, [1], 2)]
    cut = truncate(6, 2, 4, leader_epoch=2, incarnation=2)
    assert judged(*first, *again, cut).findings == ()


def test_a_fetch_under_way_outlives_its_sender() -> None:
    again = loaded(3, 2, 0, incarnation=2)
    assert (
        judged(
            LEADS, follows(2, 2, 2, 5), again, follows(4, 2, 2, 0), proposed(5, 1, 2, [1], 2)
        ).findings
        == ()
    )


def test_a_log_that_is_given_up_begins_where_the_log_of_the_leader_does() -> None:
    restarted = truncate(3, 2, 5)
    assert judged(LEADS, follows(2, 2, 2, 3), restarted, proposed(4, 1, 2, [1], 2)).findings == ()


def test_the_log_of_an_earlier_epoch_does_not_count() -> None:
    cut = truncate(3, 2, 3)
    [finding] = judged(
        LEADS, follows(2, 2, 1, 9), cut, follows(4, 2, 2, 3), proposed(5, 1, 2, [1], 2)
    ).findings
    assert "reached 3 at most" in finding.sentence


def test_a_member_that_left_is_not_judged() -> None:
    result = judged(LEADS, proposed(2, 1, 2, [1, 2]))
    assert (result.verdict, result.checked) == (Verdict.VALID, 1)


def test_only_the_highest_end_and_the_last_high_watermark_between_rare_events_are_kept() -> None:
    ends = [append(3 + n, 2, 2, 5 + n) for n in range(4)]
    marks = [high_watermark(10 + n, 1, 2, 6 + n, [1]) for n in range(4)]
    joins = proposed(20, 1, 2, [1], 2)
    assert judged(LEADS, follows(2, 2, 2, 5), *ends, *marks, joins).findings == ()
    [finding] = judged(LEADS, follows(2, 2, 2, 5), *ends[:3], *marks, joins).findings
    assert "its high watermark was 9" in finding.sentence
    assert "reached 8 at most" in finding.sentence


def test_a_broker_without_any_trace_is_in_doubt() -> None:
    silent = judged(LEADS, proposed(2, 1, 2, [1], 2))
    assert silent.verdict is Verdict.UNKNOWN
    assert (
        judged(LEADS, started(0, 2, unclean=False), proposed(2, 1, 2, [1], 2)).verdict
        is Verdict.INVALID
    )


def test_the_leadership_of_another_process_says_nothing() -> None:
    later = broker(
        3, 1, "isr-change-proposed", incarnation=2, leader_epoch=2, isr=[1], maximal_isr=[1, 2]
    )
    assert judged(LEADS, follows(2, 2, 2, 0), later).findings == ()

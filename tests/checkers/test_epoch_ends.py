"""Answers to OffsetForLeaderEpoch, and truncations that follow from them, against the logs of leaders."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.epoch_ends import epoch_end, log_of_two_epochs, moved
from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    client,
    history,
    loaded,
    log_start,
    truncate,
)
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.replication.epoch_ends import EpochEnds
from nemesis.history.events import Event
from tests.checkers.histories import judge, only

NAME = "epoch-ends-answered"
LOG = log_of_two_epochs(1, 1)
"""Broker 1 has leader epoch 0 up to 4 and leader epoch 2 up to 6, and leads."""
FOLLOWER = [loaded(1, 2, 0), append(1, 2, 0, 0, last=5)]
"""Broker 2 has leader epoch 0 up to 6."""


def judged(*events: Event | list[Event]) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def sentences(*events: Event | list[Event]) -> list[str]:
    return [finding.sentence for finding in judged(*events).findings]


@pytest.mark.parametrize(
    ("asked", "epoch", "offset"), [(0, 0, 4), (1, 0, 4), (2, 2, 6), (3, -1, -1), (9, -1, -1)]
)
def test_the_largest_epoch_up_to_the_requested_one_is_right(
    asked: int, epoch: int, offset: int
) -> None:
    result = judged(LOG, epoch_end(3, 1, asked, epoch, offset))
    assert (result.verdict, result.findings) == (Verdict.VALID, ())
    assert result.numbers == {"answers": 1, "truncations": 0}


@pytest.mark.parametrize(
    ("asked", "epoch", "offset"),
    [(1, 1, 4), (1, 2, 6), (0, 0, 3), (0, 0, 5), (2, 2, 5), (2, 2, 7), (1, -1, -1), (3, 2, 6)],
)
def test_any_other_answer_is_wrong(asked: int, epoch: int, offset: int) -> None:
    assert judged(LOG, epoch_end(3, 1, asked, epoch, offset)).verdict is Verdict.INVALID


def test_a_finding_says_what_the_log_has_and_shows_it() -> None:
    [finding] = judged(LOG, epoch_end(3, 1, 1, 1, 4)).findings
    assert finding.sentence == (
        "Broker 1, asked where leader epoch 1 of t-0 ends, answered leader epoch 1 up to 4; by its log it is leader "
        "epoch 0 up to 4."
    )
    assert [event["kind"] for event in finding.events] == ["append", "become-leader", "ok"]


def test_a_leader_knows_its_epoch_before_it_has_written() -> None:
    new = [loaded(1, 1, 0), append(1, 1, 0, 0, last=3), become_leader(2, 1, 5, 4)]
    assert sentences(new, epoch_end(3, 1, 5, 5, 4)) == []
    assert sentences(new, epoch_end(3, 1, 4, 0, 4)) == []
    assert sentences(new, epoch_end(3, 1, 5, -1, -1))


def test_a_query_may_be_answered_at_any_time_until_the_answer() -> None:
    grows = [append(5, 1, 2, 6, last=8, role="leader"), append(9, 1, 2, 9, role="leader")]
    for end in (6, 9):
        assert sentences(LOG, epoch_end(3, 1, 2, 2, end, taking=4), grows) == []
    assert sentences(LOG, epoch_end(3, 1, 2, 2, 10, taking=4), grows)
    assert sentences(LOG, grows[0], epoch_end(6, 1, 2, 2, 6))


def test_events_of_the_same_time_may_come_first_or_not() -> None:
    grows = append(3, 1, 2, 6, role="leader")
    for end in (6, 7):
        assert sentences(LOG, epoch_end(3, 1, 2, 2, end), grows) == []
        assert sentences(LOG, grows, epoch_end(2, 1, 2, 2, end)) == []


def test_a_deposed_leader_answers_from_its_own_log() -> None:
    newer = [loaded(1, 2, 0), append(1, 2, 0, 0, last=3), become_leader(2, 2, 3, 4)]
    assert sentences(LOG, newer, epoch_end(3, 1, 2, 2, 6), epoch_end(5, 2, 2, 0, 4)) == []


def test_a_broker_that_stops_leading_while_it_is_asked_may_have_answered_before() -> None:
    left = [follows(4, 1, 3, 6), truncate(5, 1, 4, leader_epoch=3)]
    assert sentences(LOG, epoch_end(3, 1, 2, 2, 6, taking=4), left) == []
    assert sentences(LOG, epoch_end(3, 1, 2, 0, 4, taking=4), left)


def test_who_does_not_lead_or_has_not_traced_is_not_judged() -> None:
    unknown = [loaded(1, 1, 9), become_leader(2, 1, 3, 9)]
    for events in (FOLLOWER, unknown, [become_leader(2, 1, 3, 9)], [loaded(1, 1, 0)]):
        node = 2 if events is FOLLOWER else 1
        result = judged(events, epoch_end(3, node, 0, 7, 7))
        assert (result.findings, result.numbers["answers"]) == ((), 0)


def test_a_query_that_fails_is_not_judged() -> None:
    sent, _ = epoch_end(3, 1, 1, 1, 4)
    failed = client(
        4, "query-0", "fail", "epoch-end", 3, node=1, leader_epoch=1, error="NOT_LEADER_OR_FOLLOWER"
    )
    assert sentences(LOG, sent, failed) == []


def test_a_topic_that_was_created_again_has_another_log() -> None:
    gone = broker(3, 1, "replica-stopped", step="delete", **TP)
    again = {"topic_id": "other"}
    fresh = [loaded(4, 1, 0, **again), become_leader(5, 1, 0, 0, **again)]
    assert sentences(LOG, gone, fresh, epoch_end(6, 1, 0, 0, 0)) == []
    assert sentences(LOG, gone, fresh, epoch_end(6, 1, 0, 0, 4))
    during = epoch_end(2, 1, 0, 0, 4, taking=8)
    assert sentences(LOG, during, gone, fresh) == []


def test_a_query_that_states_the_id_of_a_deleted_topic_is_answered_for_the_next_one() -> None:
    """``rich-clients`` in simulation, seed 1 of 30 s: the reader had metadata of the deleted topic."""
    again: dict[str, Any] = {"topic_id": "other"}
    gone = broker(3, 1, "replica-stopped", step="delete", **TP)
    fresh = [
        loaded(4, 1, 0, **again),
        become_leader(5, 1, 0, 0, **again),
        *(append(6 + end, 1, 0, end, role="leader", **again) for end in range(4)),
        append(12, 1, 0, 4, role="leader", **again),
    ]
    assert sentences(LOG, gone, fresh, epoch_end(10, 1, 0, 0, 4)) == []
    assert sentences(LOG, gone, fresh, epoch_end(10, 1, 0, 0, 3))


def test_a_process_that_ended_leads_no_longer() -> None:
    again = loaded(3, 1, 6, incarnation=2)
    result = judged(LOG, again, epoch_end(4, 1, 1, 1, 4))
    assert result.numbers["answers"] == 0


def with_start(lowered_to: int) -> list[Event]:
    """Broker 1 raises its log start to 5, leads in leader epoch 3, and is started again with this log start."""
    again = {"incarnation": 2, "log_start_offset": lowered_to}
    return [
        *LOG,
        log_start(2, 1, 5, 6),
        become_leader(3, 1, 3, 6, log_start_offset=5),
        loaded(4, 1, 6, **again),
        become_leader(5, 1, 4, 6, **again),
    ]


@pytest.mark.parametrize("end", [4, 5])
def test_a_log_whose_start_went_back_may_know_its_first_epochs_again(end: int) -> None:
    """Leader epoch 0 ends at 4 by the batches, and at 5 by the epoch file of the raised start."""
    cut = [follows(6, 2, 4, 6), truncate(8, 2, end, leader_epoch=4)]
    result = judged(FOLLOWER, with_start(0), epoch_end(6, 1, 0, 0, end), cut)
    assert (result.findings, result.numbers) == ((), {"answers": 1, "truncations": 1})


def test_a_log_whose_start_went_back_knows_no_more_than_it_had() -> None:
    for epoch, offset in ((0, 6), (1, 4), (2, 5), (-1, -1)):
        assert len(sentences(with_start(0), epoch_end(6, 1, 0, epoch, offset))) == 1
    assert sentences(with_start(0), epoch_end(6, 1, 1, 0, 4)) == []
    assert sentences(with_start(0), epoch_end(6, 1, 1, 1, 5)) == []
    cut = [follows(6, 2, 4, 6), truncate(8, 2, 6, leader_epoch=4)]
    assert len(sentences(FOLLOWER, with_start(0), cut)) == 1


@pytest.mark.parametrize(("asked", "epoch"), [(2, 2), (3, 2), (4, 4)])
def test_a_log_whose_start_went_back_is_judged_from_its_first_known_epoch_on(
    asked: int, epoch: int
) -> None:
    assert sentences(with_start(0), epoch_end(6, 1, asked, epoch, 6)) == []
    assert len(sentences(with_start(0), epoch_end(6, 1, asked, epoch, 5))) == 1


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(with_start(5), id="checkpointed"),
        pytest.param([*with_start(0), log_start(6, 1, 5, 6, incarnation=2)], id="raised-again"),
    ],
)
def test_epochs_below_the_log_start_are_forgotten(events: list[Event]) -> None:
    assert sentences(events, epoch_end(7, 1, 0, 0, 5)) == []
    assert len(sentences(events, epoch_end(7, 1, 0, 0, 4))) == 1


def test_a_follower_truncates_to_what_both_have() -> None:
    follows_on = [*FOLLOWER, *LOG, follows(2, 2, 2, 6)]
    result = judged(*follows_on, truncate(3, 2, 4, leader_epoch=2))
    assert (result.findings, result.numbers["truncations"]) == ((), 1)
    assert judged(*follows_on, truncate(3, 2, 2, leader_epoch=2)).findings == ()
    assert sentences(*follows_on, truncate(3, 2, 5, leader_epoch=2)) == [
        "Broker 2 truncated its log of t-0 in leader epoch 2 to 5, though leader 1 has leader epoch 0 up to 4."
    ]


def test_a_leader_that_starts_again_in_its_epoch_may_have_answered_more_before() -> None:
    again = [
        loaded(3, 1, 6, incarnation=2),
        become_leader(4, 1, 2, 6, incarnation=2),
    ]
    follows_on = [*FOLLOWER, *LOG, *again, follows(5, 2, 2, 6), truncate(6, 2, 5, leader_epoch=2)]
    assert judged(*follows_on).numbers["truncations"] == 0


def test_a_follower_truncates_to_the_end_of_its_own_epoch_below_the_answered_one() -> None:
    """KIP-279: the leader has leader epoch 1 up to 8, of which the follower has nothing."""
    leader = [
        loaded(1, 1, 0),
        append(1, 1, 0, 0, last=1),
        append(1, 1, 1, 2, last=7),
        become_leader(1, 1, 3, 8),
    ]
    follower = [loaded(1, 2, 0), append(1, 2, 0, 0, last=3), append(1, 2, 2, 4, last=6)]
    events = [*leader, *follower, follows(2, 2, 3, 7)]
    first, second = (truncate(time, 2, end, leader_epoch=3) for time, end in ((3, 4), (4, 2)))
    result = judged(*events, first, second)
    assert (result.findings, result.numbers["truncations"]) == ((), 2)
    [sentence] = sentences(*events, truncate(3, 2, 7, leader_epoch=3))
    assert sentence.endswith(
        "to 7, though leader 1 has leader epoch 1 up to 8, and broker 2 leader epoch 0 up to 4."
    )


def test_a_log_that_is_given_up_begins_behind_its_end() -> None:
    given_up = truncate(3, 2, 9, leader_epoch=2, log_start_offset=9)
    result = judged(FOLLOWER, LOG, follows(2, 2, 2, 6), given_up)
    assert (result.findings, result.numbers["truncations"]) == ((), 0)


def test_a_truncation_for_an_unknown_leader_is_not_judged() -> None:
    result = judged(FOLLOWER, LOG, follows(2, 2, 3, 6), truncate(3, 2, 5, leader_epoch=3))
    assert (result.findings, result.numbers["truncations"]) == ((), 0)


def test_of_many_appends_few_are_kept_and_nothing_is_lost() -> None:
    appends = [append(2 + n, 1, 2, 6 + n, role="leader") for n in range(50)]
    events = history(LOG, appends, epoch_end(60, 1, 2, 2, 56), epoch_end(62, 1, 1, 0, 4))
    for cuts in ([], [3], [20, 40], range(1, 58, 7)):
        result = judge(EpochEnds(), events, cuts)[NAME]
        assert (result.findings, result.numbers["answers"]) == ((), 2)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([LOG, moved(2, 1, 2)], id="the-same-latest-epoch"),
        pytest.param([LOG, become_leader(2, 1, 3, 6), moved(3, 1, 3)], id="without-records"),
        pytest.param([LOG, follows(2, 1, 3, 6), moved(3, 1, 2)], id="a-follower-has-no-record-yet"),
        pytest.param([loaded(1, 1, 6), moved(2, 1, 7)], id="a-log-that-was-there-before"),
        pytest.param([LOG, become_leader(2, 1, 3, 6), moved(3, 1, 2, end=5)], id="another-end"),
        pytest.param(
            [LOG, become_leader(2, 1, 3, 6), loaded(3, 1, 6), moved(4, 1, 2)], id="opened-again"
        ),
        pytest.param(
            [LOG, broker(2, 1, "log-cleaned", offset=0, last_offset=2, **TP), moved(3, 1, 9)],
            id="compacted",
        ),
    ],
)
def test_a_correct_move(events: list[Event]) -> None:
    result = judged(*events)
    assert (result.verdict, result.findings) == (
        (Verdict.VALID, ()) if result.checked else (Verdict.UNKNOWN, ())
    )


def test_a_move_that_loses_or_invents_an_epoch() -> None:
    leads = [*LOG, become_leader(2, 1, 3, 6)]
    (sentence,) = sentences(leads, moved(3, 1, 2))
    assert sentence == (
        "Broker 1 moved its log of t-0 to another directory, and knows leader epoch 2 as its latest; before the move "
        "it was leader epoch 3, which begins at 6."
    )
    assert "knows none as its latest" in sentences(leads, moved(3, 1, -1))[0]
    assert len(sentences(leads, moved(3, 1, 4))) == 1


def test_an_answer_after_a_move_is_judged() -> None:
    leads = [*LOG, become_leader(2, 1, 3, 6), moved(3, 1, 3)]
    assert sentences(leads, epoch_end(4, 1, 3, 3, 6)) == []
    assert len(sentences(leads, epoch_end(4, 1, 3, -1, -1))) == 1

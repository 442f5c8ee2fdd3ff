"""Queries that state a leader epoch, against what the broker knew at the time."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import TP, become_leader, broker, client, history
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.breaks.leader_epochs_fenced import stating
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "leader-epochs-fenced"
FENCED = "FENCED_LEADER_EPOCH"


def judged(*events: Event | list[Event]) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def test_an_answer_in_the_broker_s_epoch_is_right() -> None:
    result = judged(follows(1, 1, 2, 5), stating(2, 1, 2), become_leader(5, 1, 3, 5))
    assert (result.verdict, result.numbers) == (Verdict.VALID, {"answers": 1})


@pytest.mark.parametrize("stated", [0, 1, 3])
def test_an_answer_in_any_other_epoch_is_wrong(stated: int) -> None:
    result = judged(follows(1, 1, 2, 5), stating(2, 1, stated), become_leader(5, 1, 3, 5))
    assert result.verdict is Verdict.INVALID


@pytest.mark.parametrize(("stated", "verdict"), [(1, Verdict.VALID), (2, Verdict.INVALID)])
def test_only_an_older_epoch_is_fenced(stated: int, verdict: Verdict) -> None:
    assert judged(follows(1, 1, 2, 5), stating(2, 1, stated, error=FENCED)).verdict is verdict


@pytest.mark.parametrize("stated", [2, 3])
def test_while_the_epoch_changes_both_may_be_answered(stated: int) -> None:
    query = stating(2, 1, stated)
    changes = history(follows(1, 1, 2, 5), query[0], become_leader(2, 1, 3, 5), query[1])
    assert only(CHECKERS[NAME].check(), changes, NAME).verdict is Verdict.VALID


def test_other_refusals_are_not_judged() -> None:
    refused = stating(2, 1, 2, error="UNKNOWN_LEADER_EPOCH")
    result = judged(follows(1, 1, 2, 5), refused)
    assert (result.verdict, result.numbers) == (Verdict.VALID, {"answers": 0})


def test_other_brokers_may_know_an_older_epoch() -> None:
    assert judged(follows(1, 1, 3, 5), stating(2, 2, 2)).verdict is Verdict.VALID


def test_without_traces_answers_contradict_each_other() -> None:
    assert judged(stating(1, 1, 2), stating(3, 1, 3)).verdict is Verdict.VALID
    result = judged(stating(1, 1, 3), stating(3, 1, 2))
    assert result.findings[0].sentence == (
        "Broker 1, asked about t-0, answered in leader epoch 3, and after that it answered in leader epoch 2."
    )


def test_answers_at_the_same_time_do_not_contradict_each_other() -> None:
    first, second = stating(1, 1, 3), stating(1, 1, 2)
    for event in second:
        event.process = "query-1"
    assert judged(first, second).verdict is Verdict.VALID


def test_another_process_may_be_given_an_older_epoch() -> None:
    starts = broker(3, 1, "broker-started", incarnation=2)
    given = [become_leader(5, 1, 1, 5, incarnation=2), *stating(6, 1, 1)]
    assert judged(follows(1, 1, 2, 5), starts, given).verdict is Verdict.VALID
    assert judged(follows(1, 1, 2, 5), starts, *stating(4, 1, 1)).verdict is Verdict.VALID
    assert judged(starts, given, stating(8, 1, 2)).verdict is Verdict.INVALID


def test_an_answer_before_the_first_trace_is_of_another_process() -> None:
    result = judged(stating(1, 1, 3), follows(4, 1, 2, 5), stating(5, 1, 2))
    assert (result.verdict, result.numbers) == (Verdict.VALID, {"answers": 2})


def test_epochs_begin_again_with_a_topic_of_the_same_name() -> None:
    again = TP | {"topic_id": "another"}
    created = broker(4, 1, "become-leader", leader_epoch=0, log_end_offset=0, **again)
    result = judged(follows(1, 1, 2, 5), created, stating(5, 1, 0))
    assert (result.verdict, result.numbers) == (Verdict.VALID, {"answers": 0})


def test_a_query_that_states_nothing_is_not_judged() -> None:
    silent = [
        client(time, "query-0", kind, "latest-offset", 2, node=1)
        for time, kind in ((2, "invoke"), (3, "ok"))
    ]
    result = judged(follows(1, 1, 2, 5), silent)
    assert (result.verdict, result.numbers) == (Verdict.VALID, {"answers": 0})


def test_a_broker_goes_back_to_no_earlier_epoch() -> None:
    assert judged(follows(1, 1, 2, 5), follows(2, 1, 1, 5)).verdict is Verdict.INVALID
    assert judged(follows(1, 1, 2, 5), follows(2, 1, 2, 5)).verdict is Verdict.VALID
    assert judged().verdict is Verdict.UNKNOWN

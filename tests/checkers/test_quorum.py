"""Leaders of a KRaft quorum: what contradicts Raft, and what a correct quorum does."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.quorum import described, led_from
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.quorum import ONE_QUORUM_LEADER, QUORUM_COMMITS_STAY, Quorum
from nemesis.history.events import Event
from tests.checkers.histories import judge

Parts = list[Event | list[Event]]


def results(*parts: Event | list[Event]) -> tuple[Result, Result]:
    """Return the results of both properties, the second that of committed records."""
    judged = judge(Quorum(), history(*parts))
    return judged[ONE_QUORUM_LEADER.name], judged[QUORUM_COMMITS_STAY.name]


def test_a_deposed_leader_may_still_hold_itself_for_the_leader_of_its_epoch() -> None:
    parts: Parts = [
        described(1, 1, 3, high_watermark=10),
        described(2, 2, 5, high_watermark=14),
        described(3, 1, 3, high_watermark=10),
        *(led_from(2, 1, 3), led_from(12, 2, 5)),
    ]
    for result in results(*parts):
        assert (result.verdict, result.checked, result.findings) == (Verdict.VALID, 3, ())


def test_two_leaders_of_one_epoch_are_found_once() -> None:
    leaders, _ = results(described(1, 1, 3), described(2, 2, 3), described(3, 2, 3))
    [finding] = leaders.findings
    assert finding.sentence == "Voters 1 and 2 both led the quorum in epoch 3."


def test_a_first_record_at_the_high_watermark_replaces_nothing() -> None:
    mark = described(1, 1, 3, high_watermark=8)
    assert results(mark, led_from(8, 2, 4))[1].findings == ()
    [finding] = results(mark, led_from(7, 2, 4))[1].findings
    assert finding.sentence == (
        "Voter 1 answered the high watermark 8 in epoch 3; voter 2, the leader of epoch 4, has its first record at "
        "offset 7."
    )
    assert results(mark, led_from(7, 2, 3))[1].findings == (), "its own epoch"


@pytest.mark.parametrize("is_earlier", [False, True])
def test_epochs_are_in_order_whatever_the_order_of_the_answers_is(is_earlier: bool) -> None:
    first, later = (
        described(5, 1, 3, high_watermark=9),
        described(1 if is_earlier else 9, 2, 4, high_watermark=8),
    )
    [finding] = results(first, later)[1].findings
    assert finding.sentence.endswith("voter 2, the leader of epoch 4, answered 8.")
    higher = described(1 if is_earlier else 9, 2, 4, high_watermark=9)
    assert results(first, higher)[1].findings == ()


def test_a_leader_that_does_not_know_its_high_watermark_yet_says_nothing_of_it() -> None:
    unknown = described(2, 2, 4)
    unknown = Event(
        **{name: getattr(unknown, name) for name in unknown.__struct_fields__}
        | {"high_watermark": None}
    )
    assert results(described(1, 1, 3, high_watermark=9), unknown)[1].findings == ()


def test_without_an_answer_nothing_is_known() -> None:
    assert {result.verdict for result in results(led_from(2, 1, 3))} == {Verdict.UNKNOWN}

"""The broker epochs of an ISR's members, as leaders state them and as fetches carry them."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.isr_epochs import LEADS, fetched, proposes, received, registers
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "isr-epochs-stated"
JOINS = proposes(6, [1], 2)
SHRINKS = proposes(6, [1, 2, 3])


def judged(*events: Event) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def test_what_the_newest_fetch_carried_is_stated() -> None:
    result = judged(registers(1, 1, 8), LEADS, fetched(2, 2, 9), JOINS, received(7, {1: 8, 2: 9}))
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)


def test_nothing_is_stated_without_alter_partition() -> None:
    assert judged(LEADS, fetched(2, 2, 9), JOINS).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("stated", [7, 9])
def test_a_proposal_states_what_was_known_when_it_was_made_or_has_become_known_since(
    stated: int,
) -> None:
    before, since = fetched(2, 2, 7), fetched(7, 2, 9)
    result = judged(
        LEADS, before, JOINS, since, received(8, {1: 8, 2: stated}, error="INELIGIBLE_REPLICA")
    )
    assert result.verdict is Verdict.VALID


def test_a_member_that_has_not_fetched_in_this_term_is_unknown_to_the_leader() -> None:
    earlier = fetched(2, 2, 9, leader_epoch=1)
    assert judged(earlier, LEADS, SHRINKS, received(7, {1: 8, 2: -1})).verdict is Verdict.VALID
    [forgotten] = judged(earlier, LEADS, SHRINKS, received(7, {1: 8, 2: 9})).findings
    assert forgotten.sentence == (
        "Leader 1 of t-0 proposed ISR [1, 2] with broker epoch 9 for broker 2, none of whose fetches in leader epoch "
        "2 had carried any."
    )


def test_a_fetch_of_the_former_registration_may_be_under_way() -> None:
    former = [registers(1, 2, 7), follows(2, 2, 2, 0), registers(3, 2, 9)]
    assert judged(*former, LEADS, fetched(4, 2, 7), JOINS, received(7, {1: 8, 2: 7})).findings == ()


def test_a_fetch_of_the_former_process_may_be_under_way() -> None:
    later = follows(4, 2, 2, 0, incarnation=2)
    both = [registers(1, 2, 7), follows(2, 2, 2, 0), registers(3, 2, 9, incarnation=2), later]
    assert judged(*both, LEADS, fetched(5, 2, 7)).findings == ()
    [late] = judged(*both[2:], LEADS, fetched(5, 2, 7)).findings
    assert late.sentence == (
        "A fetch of broker 2 for t-0 in leader epoch 2 carried broker epoch 7, though the broker had registered with "
        "9 when it began to follow."
    )


def test_a_leader_that_registers_again_leaves_its_proposal_as_it_was() -> None:
    leads = [registers(1, 1, 8), LEADS, fetched(2, 2, 9), JOINS, registers(7, 1, 12)]
    assert judged(*leads, received(8, {1: 8, 2: 9})).findings == ()
    [invented] = judged(*leads, received(8, {1: 9, 2: 9})).findings
    assert invented.sentence == (
        "Leader 1 of t-0 proposed ISR [1, 2] with broker epoch 9 for itself, though it was registered with 8."
    )


def test_the_earlier_of_two_equal_proposals_may_be_the_one_that_arrives() -> None:
    twice = [LEADS, fetched(2, 2, 7), JOINS, fetched(7, 2, 9), proposes(8, [1], 2)]
    assert judged(*twice, received(9, {1: 8, 2: 7})).findings == ()
    assert judged(*twice[:2], *twice[3:], received(9, {1: 8, 2: 7})).verdict is Verdict.INVALID


def test_an_isr_that_nobody_has_proposed_is_not_judged() -> None:
    assert judged(LEADS, fetched(2, 2, 7), JOINS, received(9, {1: 8, 3: -1})).checked == 0

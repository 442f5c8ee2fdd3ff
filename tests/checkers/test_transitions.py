"""The controller's state machines take only Kafka's transitions, and take each from where they are."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nemesis.checkers.breaks.events import TP, broker, states
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.state_machines import FIRST_STATES, PREVIOUS_STATES
from nemesis.checkers.transitions import LegalTransition
from nemesis.history.events import Event
from nemesis.reference.controller import partition_state_machine, replica_state_machine
from tests.checkers.histories import finding, only

NAME = "legal-transition"


def moved(time: int, change: str, *, epoch: int = 1, node: int = 1, **columns: object) -> Event:
    about = {"controller_epoch": epoch, **states(change)}
    return broker(time, node, "transition", **about, **{**TP, **columns})


def elected(time: int, epoch: int, node: int = 1) -> Event:
    return broker(time, node, "controller-elected", controller_epoch=epoch)


def test_the_life_of_a_partition_and_of_a_replica() -> None:
    partition = ["NonExistent", "New", "Online", "Offline", "Online", "Online", "Offline"]
    replica = ["NonExistent", "New", "Online", "Offline", "DeletionStarted", "DeletionIneligible"]
    replica += ["Offline", "DeletionStarted", "DeletionSuccessful", "NonExistent", "New"]
    events = [elected(0, 1)]
    for path, broker_id in ((partition, None), (replica, 3)):
        for before, after in pairwise(path):
            events.append(moved(len(events), f"{before}->{after}", replica=broker_id))
    result = only(LegalTransition(), events)
    assert (result.verdict, result.checked, result.findings) == (Verdict.VALID, 16, ())


def test_a_transition_that_kafka_has_not() -> None:
    back = moved(2, "Online->New")
    assert only(LegalTransition(), [back]).findings == (
        finding(
            NAME,
            "t-0",
            "Broker 1, controller of epoch 1, took t-0 from Online to New, which is not a legal transition.",
            back,
        ),
    )


def test_a_transition_from_where_it_is_not() -> None:
    online, started = (
        moved(1, "New->Online", replica=3),
        moved(2, "Offline->DeletionStarted", replica=3),
    )
    result = only(LegalTransition(), [moved(0, "NonExistent->New", replica=3), online, started])
    assert result.findings == (
        finding(
            NAME,
            "t-0",
            "Broker 1, controller of epoch 1, took the replica of t-0 on broker 3 from Offline to DeletionStarted, "
            "though it had last brought it to Online.",
            online,
            started,
        ),
    )


def test_a_term_finds_no_replica_in_the_middle_of_its_deletion() -> None:
    result = only(LegalTransition(), [moved(1, "DeletionStarted->DeletionSuccessful", replica=3)])
    assert [finding.sentence.rpartition(", ")[2] for finding in result.findings] == [
        "which is not a state at the beginning of a controller epoch."
    ]


def test_a_transition_without_its_states_is_unknown() -> None:
    result = only(LegalTransition(), [broker(1, 1, "transition", controller_epoch=1, **TP)])
    assert (result.verdict, len(result.findings)) == (Verdict.UNKNOWN, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"epoch": 2},
        {"node": 2},
        {"incarnation": 2},
        {"partition": 1},
        {"topic_id": "of the topic that has the name now"},
        {"replica": 3},
    ],
)
def test_another_term_or_thing_begins_anew(other: dict[str, object]) -> None:
    again = {"change": "Online->Offline", **other}
    events = [moved(0, "New->Online"), moved(1, "Online->Offline")]
    assert only(LegalTransition(), [*events, moved(2, **again)]).verdict == Verdict.VALID  # type: ignore[arg-type]


def test_taking_the_same_office_again_begins_anew() -> None:
    events = [moved(0, "Online->Offline"), moved(2, "Online->Online")]
    assert only(LegalTransition(), events).verdict == Verdict.INVALID
    assert only(LegalTransition(), [*events, elected(1, 1)]).verdict == Verdict.VALID


def test_what_was_refused_did_not_happen() -> None:
    refused = moved(1, "Online->DeletionStarted", replica=3, error="ILLEGAL_TRANSITION")
    events = [moved(0, "New->Online", replica=3), refused]
    result = only(LegalTransition(), [*events, moved(2, "Online->Offline", replica=3)])
    # A term does not begin with a replica that is New.
    assert [item.events[0]["time"] for item in result.findings] == [0]
    assert only(LegalTransition(), [refused]).verdict == Verdict.UNKNOWN


def test_the_states_are_those_of_the_controller() -> None:
    """Written down twice, so that neither side follows the other's mistake."""
    allowed = {
        machine: {
            state.value: frozenset(before.value for before in previous)
            for state, previous in module.VALID_PREVIOUS_STATES.items()
        }
        for machine, module in (
            ("partition", partition_state_machine),
            ("replica", replica_state_machine),
        )
    }
    assert allowed == PREVIOUS_STATES
    assert all(states <= set(allowed[machine]) for machine, states in FIRST_STATES.items())

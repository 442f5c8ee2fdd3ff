"""What a broker has done when it answers a control request without an error."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.control_effects import (
    answered,
    follows,
    known,
    metadata,
    roles,
    stopped,
    updated,
)
from nemesis.checkers.breaks.events import become_leader, broker, history, loaded
from nemesis.checkers.control_effects import ControlEffects
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

LIVE = updated(0, 2, 1, 2, 3)
DELETION = answered(1, 2, "StopReplica", -2, step="delete")


def sentences(*events: Event) -> list[str]:
    result = only(ControlEffects(), history(*events))
    return [finding.sentence for finding in result.findings]


@pytest.mark.parametrize(
    "correct",
    [
        [become_leader(1, 2, 4, 0), roles(2, 2, 2, 4)],
        [follows(1, 2, 1, 4), roles(2, 2, 1, 4)],
        [become_leader(1, 2, 5, 0), roles(2, 2, 1, 4)],
        [become_leader(1, 2, 4, 0, topic_id=None), roles(2, 2, 2, 4)],
        [stopped(1, 2, "stop"), become_leader(2, 2, 4, 0), roles(3, 2, 2, 4)],
        [become_leader(1, 2, 3, 0), roles(2, 2, 2, 4, error="KAFKA_STORAGE_ERROR")],
        [become_leader(1, 2, 3, 0), roles(2, 2, 9, 4)],
        [become_leader(1, 2, 3, 0), roles(2, 2, -1, 4)],
        [answered(1, 2, "StopReplica", 4, step="stop"), DELETION],
        [loaded(0, 2, 3), answered(1, 2, "StopReplica", 4, step="stop")],
        [loaded(0, 2, 3), stopped(1, 2, "delete"), DELETION, DELETION],
        [loaded(0, 2, 3), answered(1, 2, "StopReplica", 1, step="delete", error="FENCED")],
        [known(1, 2, 4, 8), metadata(2, 2, 4, 8), metadata(3, 2, 3, 9), metadata(4, 2, 4, 7)],
        [known(1, 2, 4, 8), metadata(2, 2, -2, 0, leader=-2), metadata(3, 2, 5, 9)],
    ],
    ids=[
        "leads",
        "follows",
        "has a newer epoch",
        "has a log without a topic id",
        "leads again after a stop",
        "answers with an error",
        "does not follow a dead leader",
        "follows no broker",
        "has nothing to stop",
        "stops a log without a role",
        "deletes twice",
        "is fenced",
        "has newer metadata",
        "leaves out what is deleted",
    ],
)
def test_a_correct_broker_is_not_convicted(correct: list[Event]) -> None:
    assert sentences(LIVE, *correct) == []


def test_a_role_of_another_topic_of_the_name_does_not_count() -> None:
    (sentence,) = sentences(become_leader(1, 2, 9, 0, topic_id="old"), roles(2, 2, 2, 4))
    assert sentence == (
        "Broker 2 answered NONE to LeaderAndIsr for t-0 that it should lead in leader epoch 4, and had not done it."
    )


def test_what_an_earlier_process_did_does_not_count() -> None:
    assert len(sentences(become_leader(1, 2, 4, 0), roles(2, 2, 2, 4, incarnation=2))) == 1


def test_a_log_of_which_the_deletion_has_only_begun_is_there() -> None:
    assert len(sentences(loaded(0, 2, 3), stopped(1, 2, "deleting"), DELETION)) == 1


def test_metadata_that_were_deleted_have_to_be_taken_over_again() -> None:
    deleted = metadata(2, 2, -2, 0, leader=-2)
    again = metadata(3, 2, 4, 8, topic_id="new")
    assert len(sentences(known(1, 2, 4, 8), deleted, again)) == 1


def test_without_answers_it_is_unknown() -> None:
    result = only(ControlEffects(), history(LIVE, broker(1, 2, "broker-started")))
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)

"""What brokers answer to Metadata, and what controllers send: what correct ones are not convicted for."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import TP, history, state
from nemesis.checkers.breaks.metadata import HELD, answers, knows, live_brokers, sent
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.metadata_answers import MetadataAnswers
from nemesis.checkers.states_sent import StatesSent
from nemesis.history.events import Event
from tests.checkers.histories import only

NEXT = knows(3, 2, 5, 8, isr=[1, 2], replicas=[1, 2, 3])


def answered(*parts: Event | list[Event]) -> Result:
    return only(MetadataAnswers(), history(*parts))


def compared(*parts: Event | list[Event]) -> Result:
    return only(StatesSent(), history(*parts))


def test_an_answer_with_another_leader() -> None:
    result = answered(*HELD, answers(2, 2, 4))
    (finding,) = result.findings
    assert (finding.verdict, finding.key, result.checked) == (Verdict.INVALID, "t-0", 2)
    assert finding.sentence == (
        "Broker 3 answered that t-0 has leader 2 in leader epoch 4, ISR [1, 2] and replicas [1, 2, 3], but its "
        "metadata had leader 1 in leader epoch 4, ISR [1, 2] and replicas [1, 2, 3]."
    )


def test_an_answer_from_a_past_state() -> None:
    assert answered(*HELD, NEXT, answers(4, 1, 4)).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([*answers(2, 1, 4)], id="what-it-has"),
        pytest.param([NEXT, *answers(2, 1, 4)], id="before-a-change-meanwhile"),
        pytest.param([NEXT, *answers(2, 2, 5)], id="after-a-change-meanwhile"),
        pytest.param([live_brokers(2, 2), *answers(3, -1, 4)], id="a-leader-that-is-dead"),
        pytest.param([live_brokers(3, 2), *answers(2, 1, 4)], id="a-leader-that-dies-meanwhile"),
        pytest.param([knows(2, 1, 5, 8), *answers(3, 1, 5, isr=[7])], id="an-older-version"),
    ],
)
def test_what_a_correct_broker_answers(parts: list[Event]) -> None:
    result = answered(*HELD, parts)
    assert (result.verdict, list(result.findings)) == (Verdict.VALID, [])


def test_a_broker_without_traces_is_not_judged() -> None:
    result = answered(answers(2, 1, 4))
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)


def test_a_state_that_differs_from_its_znode() -> None:
    result = compared(state(5, 10, 2, 4, [1, 2], zk_version=7), sent(1, 1, 4, 7, [1, 2]))
    (finding,) = result.findings
    assert (finding.verdict, finding.key, result.checked) == (Verdict.INVALID, "t-0", 1)
    assert finding.sentence == (
        "UpdateMetadata named leader 1 in leader epoch 4 and ISR [1, 2] as partition epoch 7 of t-0, but the znode "
        "of that version has leader 2 in leader epoch 4 and ISR [1, 2]."
    )


def test_the_first_version_is_that_of_the_creation() -> None:
    created = state(5, 10, 2, 0, [1, 2], zk_op="create")
    assert not compared(created, sent(1, 2, 0, 0, [2, 1])).findings
    assert compared(created, sent(1, 1, 0, 0, [1, 2])).findings


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sent(1, 2, 4, 7, [1, 2]), id="as-written"),
        pytest.param(sent(1, 1, 3, 6, [1]), id="a-version-that-is-not-known"),
        pytest.param(sent(1, -2, 4, 7, []), id="a-deletion"),
        pytest.param(sent(1, 1, 3, 7, [1], **(TP | {"topic_id": "other"})), id="another-topic"),
        pytest.param(sent(1, 1, 3, 7, [1], api="StopReplica"), id="a-replica-that-stops"),
    ],
)
def test_what_a_correct_controller_sends(answer: Event) -> None:
    assert not compared(state(5, 10, 2, 4, [1, 2], zk_version=7), answer).findings

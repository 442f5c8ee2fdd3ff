"""Clients get answers, if no fault keeps them from it. The bound of a second follows from the polls of consumers."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import client, harness, history
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.checkers.breaks.requests_answered import STARTED, over, unanswered
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.liveness.requests_answered import RequestsAnswered
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    CONTROL_BACKOFF,
    CONTROL_TIMEOUT,
    FETCH_BACKOFF,
    FETCH_TIMEOUT,
    LAG_TIME,
    SESSION_TIMEOUT,
    TICK,
)
from tests.checkers.histories import only

SETTINGS = [
    harness(0, "timeout-setting", setting=setting, duration_ms=100)
    for setting in (
        TICK,
        SESSION_TIMEOUT,
        LAG_TIME,
        FETCH_TIMEOUT,
        FETCH_BACKOFF,
        CONTROL_TIMEOUT,
        CONTROL_BACKOFF,
    )
]
"""After these a recovery takes 1,250 ms at most."""
BOUND_MS = 1_250


def verdict(*parts: Event | list[Event]) -> Verdict:
    return only(RequestsAnswered(), history(STARTED, *parts)).verdict


def test_a_poll_that_is_not_answered_is_a_finding() -> None:
    assert verdict(unanswered(1500, "poll", 1000), over(2000)) is Verdict.INVALID


def test_no_answer_within_less_than_a_second_proves_nothing() -> None:
    assert verdict(unanswered(1500, "poll", 999), over(2000)) is Verdict.VALID


@pytest.mark.parametrize(("begins", "ends"), [(400, 600), (1400, 1600), (100, 1900)])
def test_a_fault_that_is_in_force_meanwhile_explains_it(begins: int, ends: int) -> None:
    assert verdict(fault(begins, ends), unanswered(1500, "poll", 1000), over(2000)) is Verdict.VALID


@pytest.mark.parametrize("f", ["send", "commit-offset", "alter-config"])
def test_what_needs_other_brokers_may_wait_for_their_recovery(f: str) -> None:
    sent = 100 + BOUND_MS
    early = unanswered(sent + 999, f, 1000)
    late = unanswered(sent + 1000, f, 1000)
    assert verdict(SETTINGS, fault(50, 100), early, over(3000)) is Verdict.VALID
    assert verdict(SETTINGS, fault(50, 100), late, over(3000)) is Verdict.INVALID


def test_without_the_settings_it_is_judged_before_the_first_fault() -> None:
    send = unanswered(1500, "send", 1000)
    assert verdict(send, fault(1600, 1700), over(2000)) is Verdict.INVALID
    assert verdict(fault(100, 200), send, over(2000)) is Verdict.VALID
    assert verdict(fault(0, 200), send, over(2000)) is Verdict.VALID


@pytest.mark.parametrize("f", ["join-group", "sync-group", "create-partitions", "delete-records"])
def test_some_answers_wait_for_what_others_do(f: str) -> None:
    """``late-requests``, seed 640002: partitions were added to a topic while another administrator deleted it."""
    assert verdict(unanswered(1500, f, 1500), over(2000)) is Verdict.VALID


def test_a_client_that_was_paused_measured_no_time() -> None:
    paused = fault(100, 900, fault="pause-client", targets=["client-0"])
    other = unanswered(1500, "poll", 1500, process="client-1")
    assert verdict(paused, unanswered(1500, "poll", 1500), over(2000)) is Verdict.VALID
    assert verdict(paused, other, over(2000)) is Verdict.INVALID


@pytest.mark.parametrize("busy", [{"lag": 500}, {"load": 1000}])
def test_a_busy_machine_may_explain_what_a_broker_answers_alone(busy: dict[str, int]) -> None:
    end = [*measured(1600, **busy), *over(2000)]
    assert verdict(unanswered(1500, "poll", 1500), end) is Verdict.UNKNOWN


def test_on_a_busy_machine_a_send_may_need_its_whole_time() -> None:
    """Kafka in containers on two processors: the client gives up when the broker has to answer, not later."""
    end = [*measured(1600, lag=170), *over(2000)]
    assert verdict(unanswered(1500, "send", 1191), end) is Verdict.VALID


def test_a_history_without_operations_is_unknown() -> None:
    assert verdict(over(2000)) is Verdict.UNKNOWN


def test_another_error_is_an_answer() -> None:
    refused = client(1500, "client-0", "fail", "poll", 1, error="NOT_LEADER_OR_FOLLOWER")
    assert verdict(client(0, "client-0", "invoke", "poll", 1), refused, over(2000)) is Verdict.VALID

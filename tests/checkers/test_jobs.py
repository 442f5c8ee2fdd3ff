"""Recurring work of brokers: when a turn is too early or too late, and what a correct broker is not convicted for."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import broker, harness, history, started
from nemesis.checkers.breaks.jobs import (
    BALANCE,
    CLEANER,
    ISR,
    ISR_EVERY_300_MS,
    REGISTERED,
    STARTED,
    ended,
    intervals,
    turn,
)
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.jobs import Jobs
from nemesis.history.events import Event
from tests.checkers.histories import only

EVERY_500_MS = "its interval is 500 ms (log.retention.check.interval.ms)."


def judged(*parts: Event | list[Event]) -> Result:
    return only(Jobs(), history(*parts))


def sentences(*parts: Event | list[Event]) -> list[str]:
    return [finding.sentence for finding in judged(*parts).findings]


def test_a_turn_before_its_interval_has_passed() -> None:
    result = judged(*STARTED, turn(500), turn(998), ended(1000))
    (finding,) = result.findings
    assert (finding.verdict, finding.key, result.checked) == (Verdict.INVALID, "broker-1", 2)
    assert finding.sentence == (
        f"Broker 1 started kafka-log-retention 498 ms after the turn before; {EVERY_500_MS}"
    )


def test_the_first_turn_counts_from_the_start_of_the_process() -> None:
    assert sentences(*STARTED, turn(498), ended(600)) == [
        f"Broker 1 started kafka-log-retention 498 ms after the process started; {EVERY_500_MS}"
    ]


def test_a_turn_that_comes_late() -> None:
    assert sentences(*STARTED, turn(500), turn(1101), ended(1200)) == [
        f"Broker 1 did not start kafka-log-retention for 601 ms without a fault; {EVERY_500_MS}"
    ]


def test_a_job_that_ends_while_others_go_on() -> None:
    isr_turns = [turn(300 * number, ISR) for number in range(1, 6)]
    assert sentences(*STARTED, ISR_EVERY_300_MS, turn(500), isr_turns, ended(1600)) == [
        f"Broker 1 did not start kafka-log-retention for 1,000 ms without a fault; {EVERY_500_MS}"
    ]


def test_a_job_that_never_starts() -> None:
    assert sentences(*STARTED, ISR_EVERY_300_MS, REGISTERED, turn(500), ended(700)) == [
        (
            "Broker 1 did not start isr-expiration for 499 ms without a fault; "
            "its interval is 300 ms (replica.lag.time.max.ms)."
        )
    ]


def test_a_turn_waits_for_its_interval_after_a_fault() -> None:
    begun = (*STARTED, turn(500), fault(600, 900), turn(1501))
    assert sentences(*begun, ended(1600)) == [
        f"Broker 1 did not start kafka-log-retention for 601 ms without a fault; {EVERY_500_MS}"
    ]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([turn(500), turn(1000), turn(1600)], id="on-time"),
        pytest.param([turn(501), turn(1000)], id="a-tick-early"),
        pytest.param([turn(500), *fault(600, 1900), turn(2000)], id="a-fault"),
        pytest.param([turn(500), *fault(600, 900), turn(1500)], id="an-interval-after-a-fault"),
        pytest.param([turn(500), *fault(600, 900, effect="none"), turn(2500)], id="no-end"),
        pytest.param([turn(500, "shutdown-idle"), turn(501, "shutdown-idle")], id="not-judged"),
        pytest.param([turn(500, CLEANER), turn(5000, CLEANER)], id="a-cleaner-that-cleans"),
        pytest.param([turn(100, CLEANER)], id="a-cleaner-that-looks-at-once"),
        pytest.param([turn(500, BALANCE), turn(5000, BALANCE)], id="balance-is-not-late"),
        pytest.param(
            [turn(500, BALANCE), broker(600, 1, "controller-elected"), turn(1400, BALANCE)],
            id="a-new-term",
        ),
        pytest.param(
            [turn(500), broker(510, 1, "job-started", incarnation=2, step="kafka-log-retention")],
            id="another-process",
        ),
        pytest.param([turn(500)], id="a-process-that-ends"),
    ],
)
def test_what_a_correct_broker_does(parts: list[Event]) -> None:
    result = judged(*STARTED, parts, ended(6000))
    assert (result.verdict, list(result.findings)) in (
        (Verdict.VALID, []),
        (Verdict.UNKNOWN, []),
    )
    assert result.checked == sum(event.step != "shutdown-idle" for event in parts if event.step)


def test_the_interval_of_isr_expiration_is_half_the_lag_time() -> None:
    begun = (*STARTED, ISR_EVERY_300_MS)
    assert not sentences(*begun, turn(300, ISR), turn(600, ISR), ended(700))
    assert sentences(*begun, turn(300, ISR), turn(598, ISR), ended(700))


def test_what_the_machine_explains_is_unknown() -> None:
    result = judged(*STARTED, turn(500), turn(1101), ended(1200, load=200))
    assert [finding.verdict for finding in result.findings] == [Verdict.UNKNOWN]


def test_nothing_is_known_without_turns_or_intervals() -> None:
    begun = started(0, 1, unclean=False)
    no_turns = judged(intervals(), begun, ended(1000))
    no_intervals = judged(begun, turn(1), turn(2), harness(3, "phase", phase="end"))
    assert {no_turns.verdict, no_intervals.verdict} == {Verdict.UNKNOWN}

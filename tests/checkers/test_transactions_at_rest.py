"""When the last producer of a transactional id has to commit; the smallest break is in ``test_properties``."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.hanging import harness, measured, settings
from nemesis.checkers.breaks.transactions_at_rest import tried
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from nemesis.history.memory import history_of

V, U, I = Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID  # noqa: E741
INIT, ADD, COMMIT = "init-producer-id", "add-partitions", "commit-transaction"


def result(*parts: Event | list[Event]) -> Result:
    check = CHECKERS["transactions-possible"].check()
    return run_checks(history_of(history(*parts)).row_groups, [check])[0]


def test_nothing_is_decided_if_nothing_was_tried() -> None:
    assert result(settings(), measured(1_000)).verdict is U


def test_an_attempt_may_fail_and_be_repeated() -> None:
    tries = [
        *tried(900, INIT),
        *tried(910, INIT, None),
        *tried(920, ADD),
        *tried(930, COMMIT, None),
    ]
    judged = result(settings(), tries, measured(1_000))
    assert (judged.verdict, judged.checked) == (V, 1)


@pytest.mark.parametrize("f", [INIT, ADD, COMMIT])
def test_a_last_producer_that_commits_nothing_is_a_finding(f: str) -> None:
    tries = [*tried(900, f), *tried(995, f)]
    assert result(settings(), tries, measured(996)).verdict is I


def test_an_attempt_that_began_late_is_unknown() -> None:
    assert result(settings(), tried(995, INIT), measured(996)).verdict is U


def test_lost_epochs_are_reported_and_allowed() -> None:
    detail = '{"last_in_isr": ["__transaction_state-0"]}'
    fault = [
        harness(1, "fault-invoke", fault="power-cut", fault_id=1, detail=detail),
        harness(10, "fault-healed", fault="power-cut", fault_id=1, effect="verified"),
    ]
    judged = result(settings(), fault, tried(900, INIT), tried(995, INIT), measured(996))
    assert judged.verdict is V
    assert judged.findings


def test_a_producer_with_too_little_time_is_unknown() -> None:
    fault = [
        harness(1, "fault-invoke", fault="kill", fault_id=1, targets=["broker-1"]),
        harness(994, "fault-healed", fault="kill", fault_id=1, effect="verified"),
    ]
    assert result(settings(), fault, tried(995, ADD), measured(996)).verdict is U


def test_a_busy_machine_is_unknown() -> None:
    late = [
        harness(996, "phase", phase="end"),
        harness(996, "harness-lag", duration_ms=900),
        harness(996, "machine-load", duration_ms=0),
    ]
    assert result(settings(), tried(994, ADD), late).verdict is U

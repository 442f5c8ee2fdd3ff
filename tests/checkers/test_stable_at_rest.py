"""When the last stable offset has to reach the high watermark; the smallest break is in ``test_properties``."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.hanging import harness, measured, settings
from nemesis.checkers.breaks.transactions_at_rest import answered, begins
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from nemesis.history.memory import history_of

V, U, I = Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID  # noqa: E741
STUCK = [answered(900, 5), answered(995, 5)]


def result(*parts: Event | list[Event]) -> Result:
    check = CHECKERS["last-stable-offset-at-rest"].check()
    return run_checks(history_of(history(*parts)).row_groups, [check])[0]


def healed(fault: str, since: int, until: int, **about: str) -> list[Event]:
    return [
        harness(since, "fault-invoke", fault=fault, fault_id=1, **about),
        harness(until, "fault-healed", fault=fault, fault_id=1, effect="verified"),
    ]


def test_nothing_is_decided_if_nothing_was_read() -> None:
    assert result(settings(), begins(1), measured(1_000)).verdict is U


def test_a_partition_that_reaches_the_high_watermark_is_counted() -> None:
    judged = result(settings(), begins(1), answered(900, 5), answered(995, 9), measured(996))
    assert (judged.verdict, judged.checked) == (V, 1)


def test_a_partition_that_stays_behind_is_a_finding() -> None:
    judged = result(settings(), begins(1), STUCK, measured(996))
    assert judged.verdict is I
    assert judged.findings[0].sentence == (
        "The last stable offset of t-0 stayed at 5 for 95 ms without a fault, below the high watermark 9, though all "
        "producers had ended. A transaction may last 18 ms."
    )


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([settings(), begins(1), answered(900, 5), answered(910, 5)], id="too short"),
        pytest.param([settings(), begins(1), answered(900, 5), answered(995, 6)], id="it rises"),
        pytest.param([settings(), begins(1), answered(995, 5)], id="one answer"),
        pytest.param([settings(), begins(1, 500), *STUCK], id="a transaction may last longer"),
        pytest.param([settings(), STUCK], id="no time-out is known"),
        pytest.param([begins(1), STUCK], id="no bound is known"),
        pytest.param([settings(), begins(1), healed("kill", 1, 990), STUCK], id="a fault"),
        pytest.param([settings(), begins(1), healed("clock-skew", 1, 9), STUCK], id="a clock"),
    ],
)
def test_a_partition_may_be_behind(parts: list[Event | list[Event]]) -> None:
    assert result(*parts, measured(996)).verdict is U


def test_a_transaction_may_hold_the_very_first_offset() -> None:
    judged = result(settings(), begins(1), answered(900, 0), answered(995, 0), measured(996))
    assert (judged.verdict, judged.checked) == (I, 1)


def test_a_busy_machine_is_unknown() -> None:
    late = [
        harness(996, "phase", phase="end"),
        harness(996, "harness-lag", duration_ms=900),
        harness(996, "machine-load", duration_ms=0),
    ]
    assert result(settings(), begins(1), STUCK, late).verdict is U


@pytest.mark.parametrize(
    ("partition", "expected"), [("t-0", V), ("__transaction_state-1", V), ("u-0", I)]
)
def test_a_lost_end_is_reported_and_allowed(partition: str, expected: Verdict) -> None:
    cut = healed("power-cut", 1, 10, detail=f'{{"last_in_isr": ["{partition}"]}}')
    judged = result(settings(), cut, begins(20), STUCK, measured(996))
    assert judged.verdict is expected
    assert judged.findings

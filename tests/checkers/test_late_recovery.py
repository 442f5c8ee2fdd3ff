"""Unavailability that no fault explains is convicted after the bound, and no correct cluster is."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import harness, history, znode
from nemesis.checkers.breaks.late_recovery import configured, fault, measured, sent
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.late_recovery import LateRecovery
from nemesis.history.events import Event
from tests.checkers.histories import only

BOUND_MS = 22
PUNCTUAL = measured(900)
END = harness(901, "phase", phase="final-reads")


def judge(*parts: Event | list[Event]) -> Result:
    return only(LateRecovery(), history(configured(), *parts, PUNCTUAL, END))


def test_a_client_that_is_refused_twice_after_the_bound() -> None:
    result = judge(sent(0, "NONE"), fault(1, 5), [sent(26), sent(27), sent(28), sent(29)])
    assert result.verdict is Verdict.INVALID
    (finding,) = result.findings
    assert finding.key == "t-0"
    assert finding.sentence == (
        "t-0 acknowledged nothing for 24 ms without an active fault; the configuration allows at most 22 ms. "
        "producer-0 got NOT_ENOUGH_REPLICAS."
    )
    assert [event["time"] // 1_000_000 for event in finding.events] == [5, 27, 29]


def test_time_counts_from_the_last_acknowledgement() -> None:
    assert judge(fault(1, 5), sent(8, "NONE"), [sent(30), sent(31)]).verdict is Verdict.INVALID
    assert judge(fault(1, 5), sent(9, "NONE"), [sent(30), sent(31)]).verdict is Verdict.VALID


def test_a_recovery_in_time_is_measured() -> None:
    result = judge(sent(0, "NONE"), fault(1, 200), sent(210), sent(350, "NONE"))
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)
    assert result.numbers == {"bound_ms": float(BOUND_MS), "slowest_recovery_ms": 150.0}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([sent(27), sent(28, process="producer-1")], id="two-clients-refused-once"),
        pytest.param([sent(27), sent(28, "NONE"), sent(29)], id="acknowledged-in-between"),
        pytest.param(
            [sent(27, "MESSAGE_TOO_LARGE"), sent(28, "MESSAGE_TOO_LARGE")], id="bad-record"
        ),
        pytest.param([sent(27, "CANCELLED"), sent(28, "CANCELLED")], id="end-of-the-workload"),
        pytest.param([*fault(20, 40, number=1), sent(27), sent(28)], id="another-fault"),
        pytest.param([*fault(2, 20, number=1), sent(27), sent(28)], id="a-fault-that-ends-later"),
        pytest.param(
            [*fault(2, 4, number=1, effect="none"), sent(27), sent(28)], id="an-end-not-verified"
        ),
        pytest.param(
            [znode(9, 1, "/admin/delete_topics/t", zk_op="create"), sent(27), sent(28)],
            id="a-deleted-topic",
        ),
        pytest.param([sent(902), sent(903)], id="after-the-workload"),
    ],
)
def test_what_is_not_held_against_the_cluster(events: list[Event]) -> None:
    result = judge(sent(0, "NONE"), fault(1, 5), events)
    assert result.findings == ()


def test_a_partition_that_never_acknowledged_counts_from_the_first_failure() -> None:
    assert judge([sent(10), sent(31), sent(31)]).verdict is Verdict.UNKNOWN
    assert judge([sent(10), sent(32), sent(33)]).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("lags", "verdict"),
    [
        ([(10, 100), (29, 100)], Verdict.INVALID),
        ([(10, 101), (29, 0)], Verdict.UNKNOWN),
        ([(29, 101)], Verdict.UNKNOWN),
        ([(5, 900), (29, 0), (40, 900)], Verdict.INVALID),
        ([(10, 0)], Verdict.UNKNOWN),
    ],
)
def test_a_late_harness_convicts_nobody(lags: list[tuple[int, int]], verdict: Verdict) -> None:
    reports = [event for time, lag in lags for event in measured(time, lag=lag)]
    assert judge_late(reports) is verdict


@pytest.mark.parametrize(
    ("loads", "verdict"),
    [
        ([(10, 1), (29, 0)], Verdict.INVALID),
        ([(10, 1), (29, 1)], Verdict.UNKNOWN),
        ([(29, 2)], Verdict.UNKNOWN),
        ([(5, 900), (29, 1), (40, 900)], Verdict.INVALID),
        ([(10, 0)], Verdict.UNKNOWN),
    ],
)
def test_a_machine_that_may_explain_the_lateness_is_not_convicted(
    loads: list[tuple[int, int]], verdict: Verdict
) -> None:
    reports = [harness(time, "machine-load", duration_ms=load) for time, load in loads]
    assert judge_late([*reports, harness(29, "harness-lag", duration_ms=0)]) is verdict


def test_only_the_whole_of_a_late_recovery_may_exceed_what_the_machine_explains() -> None:
    result = judge(sent(0, "NONE"), fault(1, 5), sent(27), sent(28), sent(60), measured(61, load=9))
    assert result.verdict is Verdict.INVALID
    assert [event["time"] // 1_000_000 for event in result.findings[0].events] == [5, 27, 60]


def test_each_late_recovery_is_a_finding() -> None:
    result = judge(sent(0, "NONE"), sent(123), sent(124), sent(230, "NONE"), sent(253), sent(254))
    assert len(result.findings) == 2


def judge_late(reports: list[Event]) -> Verdict:
    """The verdict on a recovery that takes 2 ms more than the bound."""
    refused = [sent(0, "NONE"), *fault(1, 5), sent(27), sent(29)]
    return only(LateRecovery(), history(configured(), refused, reports, END)).verdict


def test_without_the_time_outs_nothing_is_decided() -> None:
    events = history(fault(1, 5), [sent(27), sent(28)], PUNCTUAL, END)
    result = only(LateRecovery(), events)
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)

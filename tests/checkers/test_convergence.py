"""Did the cluster come back, and did the faults strike at all."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.convergence import Convergence
from nemesis.checkers.explain.words import HARNESS
from nemesis.checkers.faults import FaultEffect
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import finding, only


def harness(time: int, kind: str, **columns: Any) -> Event:
    return Event(time=time, process="harness", kind=kind, seq=time, **columns)


def nemesis(time: int, kind: str, fault_id: int, fault: str = "pause", **columns: Any) -> Event:
    about = {"targets": ["broker-2"], **columns}
    return Event(
        time=time, process="nemesis", kind=kind, seq=time, fault_id=fault_id, fault=fault, **about
    )


def leaders(time: int, error: str, **columns: Any) -> Event:
    return harness(time, "convergence", check="leaders", error=error, **columns)


class TestConvergence:
    def test_success_is_measured(self) -> None:
        events = [leaders(5, "NONE", topic="t", partition=0, duration_ms=40)]
        events += [leaders(6, "NONE", topic="t", partition=1, duration_ms=90)]
        result = only(Convergence(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 2)
        assert result.numbers == {"harness_lag_ms": 0.0, "leaders_ms": 90.0}

    def test_a_failure(self) -> None:
        bad = leaders(5, "no leader", topic="t", partition=1)
        assert only(Convergence(), [leaders(4, "NONE"), bad]).findings == (
            finding(
                "convergence",
                "t-1",
                "After the faults, t-1 did not recover in time: no leader (failed check: leaders).",
                bad,
            ),
        )

    def test_a_cluster_that_was_not_ready_before_the_first_fault(self) -> None:
        error = "the topics t did not all get leaders within 50 s"
        unready = harness(5, "convergence", check="initial-topics", error=error, duration_ms=50)
        bad = leaders(6, "it has no state", topic="t", partition=0)
        assert only(Convergence(), [unready, bad]).findings == (
            finding("convergence", "the cluster", f"Without any fault, {error}.", unready),
            finding(
                "convergence",
                "t-0",
                "Without any fault, t-0 did not recover in time: it has no state (failed check: leaders).",
                bad,
            ),
        )
        lag = harness(4, "harness-lag", duration_ms=1_500)
        assert only(Convergence(), [lag, unready]).verdict is Verdict.UNKNOWN

    def test_the_last_outcome_of_a_check_counts(self) -> None:
        assert only(Convergence(), [leaders(5, "no leader"), leaders(6, "NONE")]).verdict == "valid"

    def test_on_a_starved_machine_a_failure_is_unknown(self) -> None:
        lag, bad = harness(5, "harness-lag", duration_ms=1_500), leaders(6, "no leader")
        assert only(Convergence(), [harness(4, "phase", phase="heal"), lag, bad]).findings == (
            finding(
                "convergence",
                "the cluster",
                "After the faults, the cluster did not recover in time: no leader (failed check: leaders). But "
                "nemesis itself was up to 1500 ms late, because the machine was busy.",
                bad,
                lag,
                verdict=Verdict.UNKNOWN,
            ),
        )

    def test_a_harness_that_could_not_look_proves_nothing(self) -> None:
        blind = leaders(5, f"{HARNESS}ZooKeeper did not answer", topic="t", partition=1)
        assert only(Convergence(), [leaders(4, "NONE"), blind]).findings == (
            finding(
                "convergence",
                "t-1",
                "After the faults, it could not be observed whether t-1 recovered: ZooKeeper did not answer (failed "
                "check: leaders).",
                blind,
                verdict=Verdict.UNKNOWN,
            ),
        )

    def test_lag_before_the_heal_is_no_excuse(self) -> None:
        events = [harness(3, "harness-lag", duration_ms=1_500), harness(4, "phase", phase="heal")]
        assert only(Convergence(), [*events, leaders(6, "no leader")]).verdict == Verdict.INVALID

    @pytest.mark.parametrize(
        ("time", "verdict"), [(8, Verdict.UNKNOWN), (9, Verdict.INVALID), (90, Verdict.INVALID)]
    )
    def test_lag_after_the_check_is_no_excuse(self, time: int, verdict: Verdict) -> None:
        """The report at 8 covers the time of the check; the next ones do not."""
        heal, bad = harness(4, "phase", phase="heal"), leaders(6, "no leader")
        lags = [
            harness(reported, "harness-lag", duration_ms=1_500 if reported == time else 3)
            for reported in (5, 8, 9, 90)
        ]
        assert only(Convergence(), [heal, bad, *lags]).verdict == verdict

    def test_nothing_checked_is_unknown(self) -> None:
        assert only(Convergence(), [harness(4, "phase", phase="heal")]).verdict == Verdict.UNKNOWN


STRUCK = [
    nemesis(1, "fault-invoke", 0),
    nemesis(2, "fault-applied", 0, effect="measured"),
    nemesis(3, "fault-healed", 0, effect="verified"),
    harness(9, "phase", phase="quiet"),
]


class TestFaultEffect:
    def test_a_fault_that_struck_and_was_healed(self) -> None:
        result = only(FaultEffect(), STRUCK)
        assert (result.verdict, result.checked) == (Verdict.VALID, 1)

    def test_a_fault_without_effect(self) -> None:
        applied = nemesis(2, "fault-applied", 0, effect="none")
        assert only(FaultEffect(), [STRUCK[0], applied, *STRUCK[2:]]).findings == (
            finding(
                "fault-effect",
                "pause on broker-2",
                "pause on broker-2 was injected, but nemesis measured no effect.",
                applied,
                verdict=Verdict.UNKNOWN,
            ),
        )

    @pytest.mark.parametrize(
        ("events", "label"),
        [
            ([*STRUCK[:2], STRUCK[3]], "was never healed though the run went on"),
            (
                [*STRUCK[:2], nemesis(3, "fault-healed", 0, effect="none")],
                "was undone, but nobody could see that it was gone",
            ),
            (
                [
                    *STRUCK[:2],
                    nemesis(3, "fault-healed", 0, effect="none", detail='{"lost": "it died"}'),
                ],
                "failed by itself: it died",
            ),
            (STRUCK[:1], "was begun, but whether it struck is not recorded"),
        ],
    )
    def test_faults_that_prove_nothing(self, events: list[Event], label: str) -> None:
        result = only(FaultEffect(), events)
        assert result.verdict == Verdict.UNKNOWN
        assert [item.sentence for item in result.findings] == [f"pause on broker-2 {label}."]

    def test_an_interrupted_run_owes_no_heal(self) -> None:
        assert only(FaultEffect(), STRUCK[:2]).verdict == Verdict.VALID

    def test_more_than_a_fifth_skipped_of_a_kind(self) -> None:
        applied = [
            event
            for number in range(4)
            for event in (
                nemesis(10 * number, "fault-applied", number, effect="measured"),
                nemesis(10 * number + 1, "fault-healed", number, effect="verified"),
            )
        ]
        item = nemesis(90, "fault-skipped", 7, error="no controller", targets=None)
        assert only(FaultEffect(), [*applied, item]).verdict == Verdict.VALID
        two = nemesis(91, "fault-skipped", 8, error="no controller", targets=None)
        assert only(FaultEffect(), [*applied, item, two]).findings == (
            finding(
                "fault-effect",
                "pause",
                "2 of 6 faults of kind pause were skipped: no target was found in time, or another fault held it.",
                item,
                two,
                verdict=Verdict.UNKNOWN,
            ),
        )

    def test_one_skip_of_two_is_more_than_a_fifth(self) -> None:
        skipped = nemesis(4, "fault-skipped", 1, error="no controller", targets=None)
        assert only(FaultEffect(), [*STRUCK, skipped]).verdict == Verdict.UNKNOWN

    def test_no_fault_is_unknown(self) -> None:
        assert only(FaultEffect(), STRUCK[3:]).verdict == Verdict.UNKNOWN

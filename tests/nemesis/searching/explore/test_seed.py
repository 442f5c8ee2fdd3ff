"""One seed: what of an outcome is a finding, and what is a doubt."""

from __future__ import annotations

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict, combine
from nemesis.history.events import Event
from nemesis.searching.explore.seed import FaultCount, broken, count_faults, doubts


def finding(name: str, verdict: Verdict, sentence: str = "why") -> Finding:
    return Finding(property=name, verdict=verdict, key="orders-0", sentence=sentence)


def outcome(*results: Result, problems: tuple[str, ...] = ()) -> Outcome:
    return Outcome(
        verdict=combine(result.verdict for result in results),
        results=results,
        events=10,
        engine="inline",
        seconds=0.1,
        problems=problems,
    )


def result(name: str, *findings: Finding, checked: int = 5) -> Result:
    verdicts = [finding.verdict for finding in findings] + [Verdict.VALID] * (checked > 0)
    return Result(property=name, verdict=combine(verdicts), checked=checked, findings=findings)


def test_the_first_finding_of_each_broken_property_is_told() -> None:
    collected = broken(
        outcome(
            result(
                "hw-bounded",
                finding("hw-bounded", Verdict.INVALID, "first"),
                finding("hw-bounded", Verdict.INVALID, "second"),
            ),
            result("single-controller"),
            result("lost", finding("lost", Verdict.INVALID, "third")),
        )
    )
    assert [(item.property, item.sentence) for item in collected] == [
        ("hw-bounded", "first"),
        ("lost", "third"),
    ]


def test_what_is_undecided_is_a_doubt_and_what_is_allowed_is_not() -> None:
    undecided = outcome(
        result("fault-effect", finding("fault-effect", Verdict.UNKNOWN, "no effect")),
        result("duplicate", finding("duplicate", Verdict.VALID, "allowed")),
        problems=("broker-1.jsonl is torn",),
    )
    assert broken(undecided) == ()
    assert doubts(undecided) == (
        "broker-1.jsonl is torn",
        "fault-effect: orders-0: no effect",
    )


def test_a_skipped_fault_is_no_doubt_about_one_of_many_seeds() -> None:
    skipped = Finding(
        property="fault-effect",
        verdict=Verdict.UNKNOWN,
        key="kill",
        sentence="1 of 2 faults of kind kill were skipped",
        events=({"kind": "fault-skipped"},),
    )
    undecided = outcome(result("fault-effect", skipped))
    assert doubts(undecided, are_skips_doubts=False) == ()
    assert doubts(undecided) == ("fault-effect: kill: 1 of 2 faults of kind kill were skipped",)


def test_faults_are_counted_by_kind() -> None:
    events = [
        Event(time=time, process="nemesis", kind=kind, fault=fault)
        for time, (kind, fault) in enumerate(
            [("fault-applied", "kill"), ("fault-skipped", "kill"), ("fault-applied", "pause")]
        )
    ]
    assert count_faults(events) == {
        "kill": FaultCount(due=2, skipped=1),
        "pause": FaultCount(due=1, skipped=0),
    }


def test_a_property_that_observed_nothing_is_no_doubt() -> None:
    blind = outcome(result("single-controller", checked=0))
    assert blind.verdict is Verdict.UNKNOWN
    assert doubts(blind) == ()


def test_a_broken_property_is_told_even_when_only_allowed_findings_are_kept() -> None:
    allowed = Result(
        property="lost",
        verdict=Verdict.INVALID,
        checked=5,
        findings=(finding("lost", Verdict.VALID, "allowed"),) * 20,
        finding_count=21,
    )
    assert [item.property for item in broken(outcome(allowed))] == ["lost"]


def test_an_unknown_verdict_that_nobody_explains_is_a_doubt() -> None:
    silent = Result(property="lost", verdict=Verdict.UNKNOWN, checked=5)
    assert doubts(outcome(silent)) == ("the verdict is unknown, and no finding says why",)

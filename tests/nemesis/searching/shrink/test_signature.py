"""Which findings are the same, and which is chosen."""

from __future__ import annotations

import pytest

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict, combine
from nemesis.searching.shrink.signature import Signature, choose
from nemesis.support.errors import UsageError


def finding(name: str = "hw-bounded", key: str = "orders-0", **columns: object) -> Finding:
    event = {"kind": "high-watermark", "time": 5, **columns}
    return Finding(property=name, verdict=Verdict.INVALID, key=key, sentence="…", events=(event,))


def outcome(*findings: Finding) -> Outcome:
    names = dict.fromkeys(finding.property for finding in findings)
    results = tuple(
        Result(
            property=name,
            verdict=combine(finding.verdict for finding in findings if finding.property == name),
            checked=1,
            findings=tuple(finding for finding in findings if finding.property == name),
        )
        for name in names
    )
    verdict = combine(result.verdict for result in results)
    return Outcome(verdict=verdict, results=results, events=1, engine="inline", seconds=0.0)


def test_times_and_offsets_do_not_matter() -> None:
    same = finding(time=77, high_watermark=3)
    assert Signature.of(finding()).find(outcome(finding(key="orders-1"), same)) is same


@pytest.mark.parametrize(
    "other",
    [finding(name="hw-grows"), finding(key="orders-1"), finding(kind="append")],
    ids=["another property", "another key", "another proof"],
)
def test_another_finding_is_not_the_same(other: Finding) -> None:
    assert Signature.of(finding()).find(outcome(other)) is None


def test_a_key_that_counts_elections_is_taken_without_its_number() -> None:
    many = finding(key="controller epoch 5")
    few = finding(key="controller epoch 2")
    assert Signature.of(many).find(outcome(few)) is few


def test_what_is_undecided_or_allowed_is_no_finding_to_shrink() -> None:
    doubt = Finding(property="unseen", verdict=Verdict.UNKNOWN, key="orders-0", sentence="…")
    assert Signature.of(doubt).find(outcome(doubt)) is None
    with pytest.raises(UsageError, match="nothing to shrink: the run is unknown"):
        choose(outcome(doubt))


def test_the_earliest_finding_of_the_first_property_is_chosen() -> None:
    early, late = finding(key="orders-1", time=3), finding(key="orders-0", time=9)
    logged = finding(key="a", time=-1, zxid=2)
    assert choose(outcome(logged, late, early, finding(name="unseen", time=1))) is early


def test_a_property_can_be_named() -> None:
    unseen = finding(name="unseen")
    assert choose(outcome(finding(), unseen), "unseen") is unseen
    with pytest.raises(UsageError, match="did not break 'hw-grows': it broke hw-bounded"):
        choose(outcome(finding()), "hw-grows")

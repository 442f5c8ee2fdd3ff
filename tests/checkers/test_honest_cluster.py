"""Whatever an honest cluster goes through, nothing is found; one anomaly put in is found and named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nemesis.checkers import CHECKERS, select
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.anomalies import ANOMALIES, Spoil
from tests.checkers.histories import judge
from tests.checkers.honest_histories import JUDGED, cuts, honest_history, steps


def judge_all(events: list[Event], cut: list[int] | None = None) -> dict[str, Result]:
    return judge(select(JUDGED), events, cut or [])


@settings(max_examples=60)
@given(steps, cuts)
def test_an_honest_cluster_is_never_convicted(taken: list[tuple[int, int]], cut: list[int]) -> None:
    results = judge_all(honest_history(taken), cut)
    bad = {name: result.findings for name, result in results.items() if result.findings}
    assert not bad
    assert {result.verdict for result in results.values()} == {Verdict.VALID}


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        pytest.param(name, spoil, id=f"{name}/{spoil.__name__}")
        for name, spoils in ANOMALIES.items()
        for spoil in spoils
    ],
)
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(steps, cuts, st.data())
def test_one_anomaly_is_found_and_named(
    name: str, spoil: Spoil, taken: list[tuple[int, int]], cut: list[int], data: st.DataObject
) -> None:
    def choose(positions: Sequence[int]) -> int:
        assume(len(positions) > 0)
        return data.draw(st.sampled_from(positions))

    spoiled = spoil(honest_history(taken), choose)
    assume(spoiled is not None)
    assert spoiled is not None
    result = judge(CHECKERS[name].check(), spoiled, cut)[name]
    assert result.findings
    assert result.verdict == (Verdict.VALID if name == "duplicate" else Verdict.INVALID)


def test_every_property_but_those_of_the_harness_and_the_measured_has_an_anomaly() -> None:
    assert set(ANOMALIES) == set(JUDGED) - {"liveness"}

"""A run of the simulator is shrunk, stored and repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.faults import plan as plans
from nemesis.history.run_directory import RunDirectory
from nemesis.searching.replay import replay
from nemesis.searching.shrink import Budget, Shrunk, Signature, shrink
from nemesis.searching.shrink.shrinker import INTERRUPT
from nemesis.searching.shrink.stored import compared, store_shrunk
from nemesis.searching.shrink.trials import Size, Trials
from nemesis.searching.simulate import store_result
from nemesis.support.errors import UsageError
from tests.nemesis.searching.shrink.simulated_bug import MUTANT, begun, spec


@pytest.fixture(scope="module")
def shrunk() -> Shrunk:
    """With two runs: one bars faults in place of skipped ones, one leaves out the fault that came too late."""
    return shrink(spec(MUTANT), budget=Budget(runs=2, seconds=250.0))


def test_the_smaller_run_shows_the_same_finding(shrunk: Shrunk) -> None:
    assert (shrunk.before.faults, shrunk.after.faults) == (3, 2)
    signature = Signature.of(shrunk.evidence.finding)
    assert signature.property == "stale-controller-fenced"
    assert signature.find(shrunk.simulated.outcome) is not None


def test_the_whole_outcome_of_the_smaller_run_is_judged(shrunk: Shrunk) -> None:
    assert len(shrunk.simulated.outcome.results) > 10
    assert shrunk.spec.checkers is None


def test_the_search_says_what_ended_it(shrunk: Shrunk) -> None:
    assert shrunk.stopped_by == "2 runs"
    assert shrunk.runs == 2


def test_the_smaller_run_is_stored_with_its_plan_and_replays(
    shrunk: Shrunk, tmp_path: Path
) -> None:
    origin = store_result(begun(), spec(MUTANT), tmp_path, ["nemesis", "run"])
    run = store_shrunk(shrunk, origin, tmp_path, ["nemesis", "shrink", str(origin.path)])
    assert plans.read(run.path / "plan.yaml") == shrunk.spec.plan
    about = run.read_info().shrunk
    assert about["run"] == str(origin.path)
    assert about["after"]["faults"] == len(shrunk.spec.plan)
    page = run.report_file.read_text()
    assert about["sentence"] == compared(shrunk.before, shrunk.after)
    kept = f"keeping {about['property']} of {about['key']}"
    assert f"Shrunk from {origin.path}, {kept}: {about['sentence']}" in page
    assert 'class="diagram"' in page
    assert _verdict(run) is Verdict.INVALID
    assert replay(run).is_identical


def test_a_run_that_broke_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to shrink"):
        shrink(spec(None))


def test_a_run_of_which_nothing_can_be_left_out_is_told_as_it_is() -> None:
    def interrupt(_trials: Trials) -> None:
        raise KeyboardInterrupt

    shrunk = shrink(spec(MUTANT), budget=Budget(runs=5), show=interrupt)
    assert (shrunk.stopped_by, shrunk.is_smaller) == (INTERRUPT, False)
    assert shrunk.spec == spec(MUTANT)
    assert shrunk.simulated.outcome.verdict is Verdict.INVALID


def test_what_grew_is_explained() -> None:
    before = Size(faults=7, operations=3, seconds=60.0, deviations=0)
    after = Size(faults=2, operations=12, seconds=15.0, deviations=0)
    assert compared(before, after) == (
        "faults 7 to 2, operations 3 to 12 (more, because fewer faults weigh more), "
        "seconds 60 to 15, deviations 0 to 0"
    )
    assert "3 to 4 (more, because plainer faults weigh more)" in compared(
        before, replace(before, operations=4)
    )


def _verdict(run: RunDirectory) -> Verdict:
    return msgspec.json.decode(run.results_file.read_bytes(), type=Outcome).verdict

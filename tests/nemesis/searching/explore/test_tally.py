"""The tally: from reports of seeds to one verdict, and what people and machines are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.searching.explore.codecs import CodecReport
from nemesis.searching.explore.coverage import measure
from nemesis.searching.explore.crashes import Crash
from nemesis.searching.explore.display import summary
from nemesis.searching.explore.seed import FaultCount, SeedReport
from nemesis.searching.explore.tally import RUNS_KEPT, Tally
from tests.nemesis.searching.explore.reports import report


def tally(*reports: SeedReport) -> Tally:
    result = Tally(asked=10)
    for seed_report in reports:
        result.add(seed_report)
    return result


def test_seeds_without_findings_are_valid() -> None:
    calm = tally(report(1), report(2))
    assert (calm.verdict, calm.exit_code) == (Verdict.VALID, 0)


def test_no_seed_is_no_proof() -> None:
    assert (tally().verdict, tally().exit_code) == (Verdict.UNKNOWN, 2)


def test_a_finding_makes_it_invalid_and_names_its_seeds() -> None:
    broken = tally(report(5, broken=("hw-bounded",)), report(2, broken=("hw-bounded",)), report(3))
    assert (broken.verdict, broken.exit_code) == (Verdict.INVALID, 1)
    result = broken.properties_found["hw-bounded"]
    assert sorted(result.seeds) == [2, 5]
    assert result.first.sentence == "seed 2 broke it."


def test_a_doubt_makes_it_unknown_unless_something_was_found() -> None:
    doubtful = report(1, verdict=Verdict.UNKNOWN, doubts=("fault-effect: kill: had no effect",))
    assert (tally(doubtful, report(2)).verdict, tally(doubtful).exit_code) == (Verdict.UNKNOWN, 2)
    assert tally(doubtful, report(2, broken=("hw-bounded",))).verdict is Verdict.INVALID


def test_skipped_faults_count_over_all_seeds_together() -> None:
    due, skipped = FaultCount(due=1, skipped=0), FaultCount(due=1, skipped=1)
    skips = report(1, verdict=Verdict.UNKNOWN, faults={"kill": skipped})
    assert tally(skips).why_unknown() == ["1 of 1 faults of kind kill were skipped"]
    assert (tally(skips).verdict, tally(skips).exit_code) == (Verdict.UNKNOWN, 2)
    others = [report(seed, faults={"kill": due, "pause": due}) for seed in range(2, 6)]
    assert (tally(skips, *others).verdict, tally(skips, *others).exit_code) == (Verdict.VALID, 0)
    assert "skipped: 1 of 5 faults of kind kill" in summary(tally(skips, *others))


def test_one_skipped_fault_of_two_is_no_doubt_but_two_of_six_are() -> None:
    struck, skipped = FaultCount(due=1, skipped=0), FaultCount(due=1, skipped=1)

    def verdict(*faults: FaultCount) -> Verdict:
        seeds = [report(seed, faults={"kill": count}) for seed, count in enumerate(faults)]
        return tally(*seeds).verdict

    assert verdict(struck, skipped) is Verdict.VALID
    assert verdict(skipped, skipped) is Verdict.UNKNOWN
    assert verdict(skipped, skipped, *[struck] * 4) is Verdict.UNKNOWN
    assert verdict(skipped, *[struck] * 5) is Verdict.VALID


def test_a_crash_or_a_finding_shows_a_failure_and_a_doubt_does_not() -> None:
    assert not tally(report(1), report(2, verdict=Verdict.UNKNOWN, doubts=("why",))).shows_failure
    crashed = tally(report(1))
    crashed.add_crash(3, Crash("its process exited with code 1"))
    assert crashed.shows_failure
    assert tally(report(1, broken=("hw-bounded",))).shows_failure


def test_the_first_runs_in_doubt_are_kept() -> None:
    runs = [
        report(seed, verdict=Verdict.UNKNOWN, doubts=("why",), run=f"store/x/{seed}")
        for seed in range(RUNS_KEPT)
    ]
    assert tally(*runs[:-1]).wants_doubtful
    assert not tally(*runs).wants_doubtful
    assert "  seed 0: nemesis replay store/x/0" in summary(tally(*runs))


def test_a_verdict_of_a_seed_is_never_ignored() -> None:
    assert tally(report(1, verdict=Verdict.INVALID)).verdict is Verdict.INVALID


def test_a_property_must_observe_something_in_one_seed_not_in_each() -> None:
    blind: dict[str, Any] = {
        "checked": {"hw-bounded": 10, "single-controller": 0},
        "verdict": Verdict.UNKNOWN,
    }
    assert tally(report(1, **blind), report(2)).verdict is Verdict.VALID
    nowhere = tally(report(1, **blind), report(2, **blind))
    assert nowhere.verdict is Verdict.UNKNOWN
    assert nowhere.unseen == ["single-controller"]
    assert "in no seed was anything observed by single-controller" in "\n".join(summary(nowhere))


def test_a_crash_is_no_verdict() -> None:
    crashed = tally(report(1))
    crashed.add_crash(2, Crash("its process was ended by SIGKILL", file="store/x/crashed.txt"))
    assert (crashed.verdict, crashed.exit_code) == (Verdict.UNKNOWN, 255)
    assert crashed.over == 2
    crashed.add(report(3, broken=("hw-bounded",)))
    assert crashed.exit_code == 1
    lines = list(summary(crashed))
    assert "  seed 2: its process was ended by SIGKILL" in lines
    repeat = "nemesis explore SCENARIO --first-seed 2 --seeds 1"
    assert f"  repeat: {repeat}  # see store/x/crashed.txt" in lines


@pytest.mark.parametrize("broken", [(), ("hw-bounded",)])
def test_a_simulator_whose_codecs_differ_is_not_believed(broken: tuple[str, ...]) -> None:
    different = tally(report(1, broken=broken))
    different.add_codecs(CodecReport(seed=1, difference="event 7 differs"))
    assert different.verdict is (Verdict.INVALID if broken else Verdict.UNKNOWN)
    assert different.exit_code == 255
    assert "  seed 1: event 7 differs" in summary(different)


def test_an_interrupted_exploration_has_no_verdict_to_exit_with() -> None:
    stopped = tally(report(1))
    stopped.is_interrupted = True
    assert stopped.exit_code == 255


def test_a_property_is_satisfied_when_a_few_of_its_runs_are_kept() -> None:
    runs = [report(seed, broken=("hw-bounded",), run=f"store/{seed}") for seed in range(RUNS_KEPT)]
    assert tally(*runs[:-1]).satisfied == frozenset()
    assert tally(*runs).satisfied == {"hw-bounded"}


def test_the_first_finding_comes_with_the_command_that_replays_it() -> None:
    broken = tally(
        report(1, broken=("hw-bounded",)), report(4, broken=("hw-bounded",), run="store/x/4")
    )
    lines = "\n".join(summary(broken))
    assert "2: 1, 4" in lines
    assert "seed 1: orders-0: seed 1 broke it." in lines
    assert "nemesis replay store/x/4" in lines


def test_people_read_findings_last_and_counts_only_when_they_ask() -> None:
    reached = measure([])
    broken = tally(
        report(1, broken=("hw-bounded",), run="store/x/1", coverage=reached),
        report(2, doubts=("why",), coverage=reached),
    )
    broken.elapsed_s = 1.0
    short, long = list(summary(broken)), list(summary(broken, is_verbose=True))
    parts = ("reached in 2 runs", "NEVER in 2 runs", "2 of 10 seeds", "unknown", "property")
    begins = [next(n for n, line in enumerate(short) if line.startswith(part)) for part in parts]
    assert begins == sorted(begins)
    assert short[-1] == long[-1]
    assert short[-1].strip() == "nemesis replay store/x/1"
    assert not any("(how often" in line for line in short)
    assert any("(how often" in line for line in long)


def test_machines_are_told_everything() -> None:
    broken = tally(report(1, broken=("hw-bounded",), run="store/x/1"), report(2, doubts=("why",)))
    broken.add_crash(3, Crash("hung", trace="where", output="words", file="f"))
    reported = json.loads(json.dumps(broken.as_json()))
    assert reported["verdict"] == "invalid"
    assert reported["seeds"] == {"asked": 10, "done": 2, "crashed": 1}
    [finding] = reported["findings"]
    assert finding["seeds"] == [1]
    assert finding["replay"] == "nemesis replay store/x/1"
    repeat = "nemesis explore SCENARIO --first-seed {} --seeds 1"
    assert reported["unknown"] == [
        {"seed": 2, "reasons": ["why"], "run": None, "repeat": repeat.format(2)}
    ]
    assert reported["crashed"] == [
        {
            "seed": 3,
            "reason": "hung",
            "trace": "where",
            "output": "words",
            "file": "f",
            "repeat": repeat.format(3),
        }
    ]
    assert reported["hashes"] == {"1": f"{1:032x}", "2": f"{2:032x}"}
    assert reported["properties"]["hw-bounded"] == {"checked": 20, "seeds": 2}

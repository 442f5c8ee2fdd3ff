"""An exploration: which tasks there are, and what becomes of those that crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.history.events import Event, Kind
from nemesis.mutants.chosen import ChosenMutant
from nemesis.scenarios import scenario
from nemesis.searching.explore.codecs import CodecTask, difference
from nemesis.searching.explore.exploration import Exploration, Task
from nemesis.searching.explore.pool import Crashed
from nemesis.searching.explore.tally import Tally
from nemesis.searching.simulate import SimulationResult
from nemesis.simulation.memory_record import Entry
from tests.nemesis.searching.explore.reports import report


@pytest.fixture
def exploration(tmp_path: Path) -> Exploration:
    return Exploration(
        scenario=scenario.override(scenario.load("partition-controller"), runtime="simulation"),
        first_seed=5,
        seeds=3,
        jobs=1,
        store=tmp_path,
        command_line=("nemesis", "explore"),
        mutant=ChosenMutant("lost"),
        checkers=("hw-bounded", "lost-write"),
        options=("--time-limit", "60"),
    )


def test_a_crashed_seed_leaves_a_file_with_all_that_is_known(exploration: Exploration) -> None:
    tally = Tally(asked=3, repeats=exploration.repeats)
    task = exploration.task(6, tally)
    exploration.take(Crashed(task, "KeyError: 7", "the trace", "the words"), tally)
    crash = tally.crashed[6]
    assert crash.file == str(exploration.store / "partition-controller" / "crashed-seed-6.txt")
    assert Path(crash.file).read_text() == (
        "KeyError: 7\n\n"
        "repeat it: nemesis explore partition-controller --first-seed 6 --seeds 1 --mutant lost"
        " --checkers hw-bounded,lost-write --time-limit 60\n\n"
        "the trace\n\nthe words\n"
    )


def test_a_store_that_cannot_be_written_hides_no_crash(
    exploration: Exploration, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    exploration = replace(exploration, store=tmp_path / "file")
    tally = Tally(asked=3)
    exploration.take(Crashed(exploration.task(6, tally), "KeyError: 7"), tally)
    assert (tally.crashed[6].reason, tally.crashed[6].file) == ("KeyError: 7", None)


def test_a_crash_with_the_real_codec_takes_no_finding_away(exploration: Exploration) -> None:
    tally = Tally(asked=3)
    tally.add(report(6, broken=("hw-bounded",)))
    task = CodecTask(exploration.task(6, tally).spec)
    exploration.take(Crashed(task, "still at work after 300 s", "", "the stack"), tally)
    assert tally.crashed == {}
    assert "hw-bounded" in tally.properties_found
    assert tally.mismatches[6].startswith("crashed: still at work after 300 s")
    assert tally.exit_code == 255


@pytest.mark.parametrize("is_seed_first", [True, False])
def test_a_seed_that_crashes_with_either_codec_is_no_difference(
    exploration: Exploration, is_seed_first: bool
) -> None:
    tally = Tally(asked=3)
    task = exploration.task(6, tally)
    tasks: list[Task] = [task, CodecTask(task.spec)]
    for item in tasks if is_seed_first else reversed(tasks):
        exploration.take(Crashed(item, "KeyError: 7"), tally)
    assert (list(tally.crashed), tally.mismatches) == ([6], {})


def simulated(*details: str | None) -> SimulationResult:
    kinds = [Kind.FAULT_APPLIED, Kind.LEADER_ELECTED]
    entries = tuple(
        Entry("harness", Event(time=i, process="p", kind=kind, detail=detail))
        for i, (kind, detail) in enumerate(zip(kinds, details, strict=True))
    )
    return SimulationResult(
        outcome=Outcome(verdict=Verdict.VALID, results=(), events=2, engine="inline", seconds=0.0),
        trace_hash="",
        entries=entries,
        phases=(),
        issued=(),
        node_errors=(),
        deviations=0,
        reach=None,
        virtual_s=0.0,
        real_s=0.0,
    )


def test_codecs_may_differ_in_sizes_only_and_only_the_rest_is_told() -> None:
    by_reference = simulated("held 10 B", "new")
    assert difference(by_reference, simulated("held 99 B", "new")) is None
    reported = difference(by_reference, simulated("held 99 B", "offline"))
    assert reported is not None
    assert "event 1 (counted from 0) differs in detail" in reported

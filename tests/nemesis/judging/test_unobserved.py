"""A run of a target that lacks a source is judged by what it shows, and says what it does not."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory
from nemesis.history.sources import ALL_SOURCES, EventSource
from nemesis.judging import judge
from tests.nemesis.judging.archives import archived

ABSENT = {EventSource.TRACES, EventSource.REPLICA_SAMPLES}
UNTRACED = tuple(source for source in ALL_SOURCES if source not in ABSENT)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A simulated run whose brokers have left no traces."""
    run = archived(4, tmp_path)
    for traces in run.raw.glob("broker-*.jsonl"):
        traces.unlink()
    run.results_file.unlink()
    return run


def without(run: RunDirectory, observes: tuple[EventSource, ...]) -> RunDirectory:
    run.write_info(msgspec.structs.replace(run.read_info(), observes=observes))
    return run


def test_traces_that_are_missing_make_the_run_unknown(run: RunDirectory) -> None:
    outcome = judge.judge(run, engine="inline")
    assert outcome.verdict is not Verdict.VALID
    assert any("broker-1.jsonl is missing" in problem for problem in outcome.problems)


def test_traces_that_the_target_does_not_have_do_not(run: RunDirectory) -> None:
    outcome = judge.judge(without(run, UNTRACED), engine="inline")
    assert outcome.problems == ()
    assert {result.verdict for result in outcome.results} == {Verdict.VALID}
    assert outcome.verdict is Verdict.VALID
    hidden = {item.property: item.without for item in outcome.not_observed}
    assert hidden["hw-bounded"] == (EventSource.TRACES,)
    assert hidden["hw-sampled"] == (EventSource.REPLICA_SAMPLES,)
    partial = {result.property for result in outcome.results if result.in_part_without}
    assert "single-controller" in partial
    assert partial.isdisjoint({"controller-epoch-grows", "lost-write"})
    assert partial.isdisjoint(hidden)


def test_every_report_names_what_was_not_observed(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    without(run, UNTRACED)
    assert call(["check", str(run.path), "--engine", "inline", "-v"]) == 0
    said = capsys.readouterr().out
    assert "Not observed, because the run lacks traces of brokers: broker-epoch-fenced, " in said
    assert "Judged in part, because the run lacks traces of brokers; " in said
    last = said.splitlines()[-1]
    hidden = judge.read_outcome(run).not_observed
    assert last.startswith(f"valid ({len(hidden)} not observed, ")
    page = run.report_file.read_text()
    assert "that could be observed held over" in page
    assert "The run lacks traces of brokers." in page
    assert "controllers elected" not in page
    suite = ET.parse(run.junit_file).getroot()
    assert suite.get("skipped") == str(len(hidden))
    skipped = [
        case.get("name") for case in suite.iter("testcase") if case.find("skipped") is not None
    ]
    assert skipped == [item.property for item in hidden]


def test_a_run_in_which_nothing_was_judged_is_unknown(run: RunDirectory) -> None:
    outcome = judge.judge(without(run, UNTRACED), checkers=["hw-bounded"], engine="inline")
    assert outcome.results == ()
    assert outcome.verdict is Verdict.UNKNOWN
    assert [item.property for item in outcome.not_observed] == ["hw-bounded"]
    assert "No property was judged over" in run.report_file.read_text()
    suite = ET.parse(run.junit_file).getroot()
    assert (suite.get("skipped"), suite.get("errors")) == ("1", "1")


def test_a_check_of_one_property_keeps_what_is_known_of_the_others(run: RunDirectory) -> None:
    before = judge.judge(without(run, UNTRACED), engine="inline")
    judge.judge(run, checkers=["lost-write"], engine="inline")
    kept = judge.read_outcome(run)
    assert (kept.verdict, kept.not_observed) == (before.verdict, before.not_observed)
    assert kept.not_recorded == before.not_recorded

"""Which faults are shorter than the time-out that reveals them, and what a run of such faults is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nemesis.cli.app import call
from nemesis.faults import FAULTS
from nemesis.history.run_directory import RunDirectory
from nemesis.history.vocabulary import harness
from nemesis.support.detection import LAG, MEMBER_SESSION, REVEALED_BY, SESSION, undetectable

TIMEOUTS = {SESSION: 2000, LAG: 1500, MEMBER_SESSION: 3000}


@pytest.mark.parametrize(
    ("fault", "duration_s", "is_detectable"),
    [
        ("pause", 1.4, False),
        ("pause", 1.5, True),
        ("kill", 1.9, False),
        ("kill", 2.0, True),
        ("partition", 1.0, False),
        ("stall-follower", 1.0, False),
        ("stall-follower", 5.0, True),
        ("expire-session", 0.0, True),
        ("pause-client", 2.9, False),
        ("pause-client", 3.0, True),
        ("kill-client", 0.1, True),
    ],
)
def test_a_fault_is_detectable_from_its_time_out_on(
    fault: str, duration_s: float, is_detectable: bool
) -> None:
    plan = [{"at_s": 5.0, "fault": fault, "duration_s": duration_s}]
    phrases = undetectable(plan, TIMEOUTS)
    assert phrases == [] if is_detectable else phrases[0].startswith(f"{fault} at 5 s lasts")


def test_no_cluster_without_groups_is_to_notice_a_pause_of_a_client() -> None:
    plan = [{"at_s": 5.0, "fault": "pause-client", "duration_s": 0.1}]
    assert undetectable(plan, {SESSION: 2000, LAG: 1500}) == []


def test_the_setting_of_sessions_of_members_is_recorded_under_this_name() -> None:
    assert MEMBER_SESSION == harness.MEMBER_SESSION


def test_only_faults_that_exist_are_judged() -> None:
    assert set(REVEALED_BY) <= set(FAULTS)


SCENARIO = """
name: mine
time_limit_s: 15
expect: EXPECT
workload: {options: {producers: 4, consumers: 2, send_interval_ms: 160, poll_interval_ms: 160}}
faults: {kinds: [pause], recipes: []}
"""
PLAN = "- {at_s: 6, fault: pause, target: bystander, duration_s: 0.5}\n"
NOTICED = "- {at_s: 6, fault: pause, target: bystander, duration_s: 2.5}\n"


@pytest.mark.parametrize(
    ("plan", "expect", "code", "listed"),
    [
        (PLAN, "noticed", 2, 1),
        (PLAN, "unnoticed", 0, 1),
        (NOTICED, "noticed", 0, 0),
    ],
)
def test_a_run_that_tests_nothing_is_unknown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    plan: str,
    expect: str,
    code: int,
    listed: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(SCENARIO.replace("EXPECT", expect))
    Path("plan.yaml").write_text(plan)
    arguments = ["--runtime", "simulation", "--seed", "1", "--plan", "plan.yaml"]
    assert call(["run", "mine.yaml", *arguments]) == code
    shown = capsys.readouterr()
    assert shown.err.count("not detectable: pause at 6 s lasts 0.5 s") == listed
    run = RunDirectory.open(Path("store/latest"))
    assert len(run.read_info().undetectable) == listed
    assert ("Not detectable" in run.report_file.read_text()) is bool(listed)
    last = shown.out.splitlines()[-1]
    is_unknown = code == 2
    assert last.startswith("unknown: no fault of the plan could be detected: ") is is_unknown


def test_an_objective_is_a_verdict_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SCENARIO.replace("EXPECT", "noticed")
    plan = "- {at_s: 6, fault: kill, target: leader, duration_s: 2.5}\n"
    Path("plan.yaml").write_text(plan)
    arguments = ["--runtime", "simulation", "--seed", "1", "--plan", "plan.yaml", "--json"]
    verdicts: dict[float, tuple[int, Any]] = {}
    for limit_s in (0.5, 15):
        Path("mine.yaml").write_text(f"{text}objectives: {{leaderless_s: {limit_s}}}\n")
        code = call(["run", "mine.yaml", *arguments])
        results = json.loads(capsys.readouterr().out)["outcome"]["results"]
        (own,) = (item for item in results if item["property"] == "objective-leaderless")
        others = {item["verdict"] for item in results if item is not own}
        assert others == {"valid"}
        verdicts[limit_s] = (code, own)
    assert [code for code, _ in verdicts.values()] == [1, 0]
    sentence = verdicts[0.5][1]["findings"][0]["sentence"]
    assert sentence.endswith("the objective is 0.5 s.")

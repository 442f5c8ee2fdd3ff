"""The main job, end to end, as a user runs it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from nemesis.checkers import judged_by_default
from nemesis.faults import plan as plans
from nemesis.history.run_directory import RunDirectory
from tests.e2e.command import SCENARIO, events, latest, nemesis
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

PHASES = ["start", "warm-up", "faults", "heal", "quiet", "final-reads", "convergence", "end"]
OUTCOMES = {"ok", "fail", "info"}


def test_the_main_job_is_valid_and_judged_alike_by_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the locale C and in a directory that this locale cannot name, as ZooKeeper and Spark have to."""
    monkeypatch.setenv("LC_ALL", "C")
    tmp_path = tmp_path / "Prüfstand"
    tmp_path.mkdir()
    ran = valid_run(tmp_path, SCENARIO, "--seed", "7", "--time-limit", "30")

    run = RunDirectory.open(latest(tmp_path))
    info = run.read_info()
    last_line = ran.stdout.rstrip("\n").split("\n")[-1]
    assert last_line.startswith("valid; report: store/")
    assert last_line.endswith(f" replay store/{info.scenario}/{run.path.name}")
    assert "--seed 7 --plan store/" in info.replay
    for file in (run.results_file, run.report_file, run.junit_file, run.path / "plan.yaml"):
        assert file.stat().st_size > 0, file
    assert info.phases == PHASES
    assert plans.encode(plans.read(run.path / "plan.yaml")) == info.plan

    operations = events(run.path, "clients")
    kinds = Counter(event["kind"] for event in operations)
    assert kinds["invoke"] == sum(kinds[outcome] for outcome in OUTCOMES)
    assert {e["f"] for e in operations if e["kind"] == "ok"} >= {"send", "poll"}

    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert len(applied) >= len(info.plan) - 1
    assert {event["effect"] for event in applied} == {"measured"}

    outcome = json.loads(run.results_file.read_text())
    assert {result["property"] for result in outcome["results"]} >= set(
        judged_by_default(info.observes, "produce-consume")
    )
    again = nemesis(tmp_path, "check", str(run.path), "--engine", "inline", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    inline = json.loads(again.stdout)["outcome"]
    assert [(r["property"], r["verdict"], r["checked"]) for r in inline["results"]] == [
        (r["property"], r["verdict"], r["checked"]) for r in outcome["results"]
    ]

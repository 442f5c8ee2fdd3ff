"""The main job in containers, as a user runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nemesis.history.run_directory import RunDirectory
from tests.e2e.command import SCENARIO, events, latest, nemesis
from tests.e2e.docker_machine import build_image, needs_docker, run_id_of, things
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400, func_only=True), needs_docker]

MEMBERS_PLAN = """\
- {at_s: 4, fault: kill-zookeeper, target: leader, duration_s: 5}
- {at_s: 17, fault: pause-zookeeper, target: leader, duration_s: 5}
- {at_s: 29, fault: partition-zookeeper, shape: from-members, target: leader, duration_s: 5}
- {at_s: 41, fault: kill-zookeeper, target: majority, duration_s: 4}
"""
"""With time enough in between for real servers to be whole again."""


@pytest.fixture(scope="module", autouse=True)
def _image() -> None:
    build_image()


def test_the_main_job_is_valid_and_leaves_nothing(tmp_path: Path) -> None:
    options = ("--runtime", "docker", "--seed", "7", "--time-limit", "30")
    valid_run(tmp_path, SCENARIO, *options)

    run = RunDirectory.open(latest(tmp_path))
    assert things(run_id_of(run.path)) == []
    info = run.read_info()
    assert (info.runtime, info.zookeepers) == ("docker", 3)
    assert "--runtime docker" in info.replay
    assert {"start", "stop", "ingest", "check"} <= set(info.durations_s)
    assert info.versions["docker"]
    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert len(applied) >= len(info.plan or ()) - 1
    assert {event["effect"] for event in applied} == {"measured"}
    struck = [json.loads(event["detail"]) for event in applied if event["fault"] == "kill"]
    assert all(
        measured["container"].endswith(f"-{node}")
        for detail in struck
        for node, measured in detail.items()
    )
    assert "nemesis-" in run.report_file.read_text()


@pytest.mark.nightly
def test_members_of_the_ensemble_are_struck_too(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(MEMBERS_PLAN)
    options = ("--runtime", "docker", "--seed", "3", "--plan", str(plan), "--engine", "inline")
    valid_run(tmp_path, "machine-faults", *options)
    run = latest(tmp_path).resolve()
    kinds = {"fault-applied": "measured", "fault-healed": "verified"}
    fault_events = [e for e in events(run, "nemesis") if e["kind"] in kinds]
    assert len(fault_events) == 2 * MEMBERS_PLAN.count("fault:")
    assert all(event["effect"] == kinds[event["kind"]] for event in fault_events)


def test_what_containers_cannot_do_here_is_refused_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "programs" / "mkfs.ext4"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'no such luck' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    named = ("--faults", "power-cut,disk-full,disk-failure,partition")
    ran = nemesis(tmp_path, "run", "machine-faults", "--runtime", "docker", *named)
    assert ran.returncode == 254
    said = " ".join(ran.stderr.split())
    assert "the runtime docker cannot do power-cut, disk-full, disk-failure (" in said
    assert "failed: no such luck): it can partition," in said
    assert not (tmp_path / "store").exists()

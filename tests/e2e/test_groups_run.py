"""The scenario ``groups`` on a mixed cluster: coordinators of either kind fail, and all promises of groups are kept."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from nemesis.history.run_directory import RunDirectory
from tests.e2e.command import events, latest
from tests.e2e.kafka_jars import require_jars
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FAULTS = "kill,partition,pause"
DECIDED = (
    "one-owner-per-generation",
    "generation-grows",
    "fenced-member",
    "offsets-read-as-committed",
)


GROUPS = 4
"""As many as the topic of offsets has partitions. Their names follow each other, so each partition has one group, and
wherever Kafka places the first partition, each broker coordinates at least one."""


def scenario(tmp_path: Path) -> Path:
    """Write ``groups`` with four groups."""
    path = tmp_path / "groups.yaml"
    read = yaml.safe_load((files("nemesis.scenarios") / "groups.yaml").read_text())
    options = read["workload"]["options"]
    options["lone_groups"] = GROUPS - options["groups"]
    path.write_text(yaml.safe_dump(read))
    return path


def test_groups_of_a_mixed_cluster_are_valid(tmp_path: Path) -> None:
    require_jars()
    arguments = ("--seed", "4", "--time-limit", "26", "--faults", FAULTS, "--engine", "inline")
    valid_run(tmp_path, str(scenario(tmp_path)), "--target", "mixed", *arguments, timeout_s=400)

    run = RunDirectory.open(latest(tmp_path))
    outcome = json.loads(run.results_file.read_text())
    checked = {result["property"]: result["checked"] for result in outcome["results"]}
    assert all(checked[name] > 0 for name in DECIDED), checked
    joined = [
        event
        for event in events(run.path, "clients")
        if event.get("f") == "join-group" and event["kind"] == "ok"
    ]
    assert {event["node"] for event in joined} & {1}, "the reference coordinated no group"
    assert {event["node"] for event in joined} & {2, 3}, "Kafka coordinated no group"
    assert 'id="consumer-groups"' in run.report_file.read_text()

"""A real cluster whose brokers are restarted in turn, join and leave under load, and keep their promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.faults import plan as plans
from nemesis.faults.add_broker import AddBroker
from nemesis.faults.plan import PlannedFault
from nemesis.faults.remove_broker import RemoveBroker
from nemesis.faults.rolling_restart import RollingRestart
from tests.e2e.command import SCENARIO, latest
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PLAN = (
    PlannedFault(4.5, AddBroker(partitions=3, duration_s=7.0)),
    PlannedFault(18.0, RemoveBroker(selector="leader", duration_s=5.0)),
    PlannedFault(30.0, RollingRestart(order="controller-first")),
)


def test_members_change_and_the_run_is_valid(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plans.write(plan, PLAN)
    options = ("--plan", str(plan), "--time-limit", "48", "--engine", "inline")
    valid_run(tmp_path, SCENARIO, *options)
    run = latest(tmp_path)
    assert (run / "raw" / "broker-4.jsonl").stat().st_size > 0
    lines = (run / "raw" / "nemesis.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    applied = [event["fault"] for event in events if event["kind"] == "fault-applied"]
    assert applied == ["add-broker", "remove-broker", "rolling-restart"]
    assert [event for event in events if event["process"] == "administrator"]

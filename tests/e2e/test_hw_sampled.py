"""A planted bug is seen in samples alone: brokers of the reference that are judged as if they wrote no traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.cli.app import call
from nemesis.targets.kafka.target import KafkaTarget
from nemesis.targets.reference import ReferenceTarget
from tests.e2e.command import SCENARIO

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

RUN = ("--seed", "1", "--time-limit", "30", "--faults", "stall-follower", "--engine", "inline")


def test_a_high_watermark_that_follows_the_leaders_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReferenceTarget, "observes", KafkaTarget().observes)
    store = tmp_path / "store"
    planted = ("--mutant", "hw-follows-leader-leo")
    code = call(["run", SCENARIO, *RUN, *planted, "--runtime", "local", "--store", str(store)])
    assert code == 1
    outcome = json.loads((store / "latest" / "results.json").read_text())
    verdicts = {result["property"]: result["verdict"] for result in outcome["results"]}
    assert verdicts["hw-sampled"] == "invalid"
    assert "hw-bounded" not in verdicts

"""Unmodified brokers of Apache Kafka 3.9.1 on the runtime local, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.history.run_directory import RunDirectory
from nemesis.targets.kafka.releases import DEFAULT_VERSION
from tests.e2e.command import SCENARIO, events, latest, nemesis
from tests.e2e.kafka_jars import require_jars
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FAULTS = "partition,kill-controller,expire-session,delay-control"
KAFKA = ("--target", "kafka", "--runtime", "local")


@pytest.fixture(autouse=True, scope="module")
def _jars() -> None:
    """Kafka's jars, or a reason why they cannot be had here."""
    require_jars()


def test_kafka_under_faults_is_valid_and_its_run_is_stored(tmp_path: Path) -> None:
    arguments = ("--seed", "3", "--time-limit", "30", "--faults", FAULTS, "--engine", "inline")
    valid_run(tmp_path, SCENARIO, *KAFKA, *arguments, timeout_s=400)

    run = RunDirectory.open(latest(tmp_path))
    info = run.read_info()
    assert info.config["target_options"] == {"kafka-version": DEFAULT_VERSION}
    assert f"--target kafka --runtime local --kafka-version {DEFAULT_VERSION}" in info.replay
    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert applied
    assert {event["effect"] for event in applied} == {"measured"}
    outcome = json.loads(run.results_file.read_text())
    assert {item["property"] for item in outcome["not_observed"]} >= {"leader-completeness"}
    checked = {result["property"]: result["checked"] for result in outcome["results"]}
    for judged in ("final-logs", "lost-write", "leader-from-isr", "deletion"):
        assert checked[judged] > 0, judged
    for number in (1, 2, 3):
        log = (run.logs / f"broker-{number}.log").read_text(encoding="utf-8")
        assert "kafka.server.KafkaServer" in log

    shrunk = nemesis(tmp_path, "shrink", str(run.path))
    assert shrunk.returncode == 254
    assert "is a run on the runtime local, not a simulated one" in shrunk.stderr

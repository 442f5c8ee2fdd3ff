"""Unmodified brokers of Apache Kafka in containers, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.history.quorum_log import committed, read_quorum_log
from nemesis.history.run_directory import RunDirectory
from tests.e2e.command import SCENARIO, events, latest, nemesis
from tests.e2e.docker_machine import build_image, needs_docker, run_id_of, things
from tests.e2e.kafka_jars import require_jars
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600, func_only=True), needs_docker]

FAULTS = "partition,kill-controller,expire-session,reset-connections"
KAFKA = ("--target", "kafka", "--runtime", "docker")
KRAFT_VERSION = "4.1.1"
VOTERS = 3


@pytest.fixture(scope="module", autouse=True)
def _image() -> None:
    """The image, and Kafka's jars, or a reason why they cannot be had here."""
    build_image()
    require_jars()


def test_kafka_in_containers_is_valid_under_faults_and_leaves_nothing(tmp_path: Path) -> None:
    arguments = ("--seed", "3", "--time-limit", "30", "--faults", FAULTS, "--engine", "inline")
    valid_run(tmp_path, SCENARIO, *KAFKA, *arguments, timeout_s=500)

    run = RunDirectory.open(latest(tmp_path))
    assert things(run_id_of(run.path)) == []
    info = run.read_info()
    assert (info.runtime, info.target) == ("docker", "kafka")
    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert applied
    assert {event["effect"] for event in applied} == {"measured"}
    outcome = json.loads(run.results_file.read_text())
    assert {item["property"] for item in outcome["not_observed"]} >= {"leader-completeness"}
    checked = {result["property"]: result["checked"] for result in outcome["results"]}
    for judged in ("final-logs", "lost-write", "leader-from-isr"):
        assert checked[judged] > 0, judged
    for number in (1, 2, 3):
        log = (run.logs / f"broker-{number}.log").read_text(encoding="utf-8")
        assert "kafka.server.KafkaServer" in log


@pytest.mark.nightly  # test_kafka_kraft.py has one without containers
def test_a_kraft_quorum_in_containers_is_valid_under_faults_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    require_jars(KRAFT_VERSION)
    asked = (*KAFKA, "--kafka-version", KRAFT_VERSION)
    arguments = ("--seed", "3", "--time-limit", "30", "--faults", FAULTS, "--engine", "inline")
    valid_run(tmp_path, SCENARIO, *asked, *arguments, timeout_s=500)

    run = RunDirectory.open(latest(tmp_path))
    assert things(run_id_of(run.path)) == []
    assert "zookeeper-" not in (run.path / "compose.yaml").read_text()
    assert not list(run.zookeeper.glob("*"))
    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert applied
    assert {event["effect"] for event in applied} == {"measured"}
    log = committed([read_quorum_log(voter) for voter in sorted(run.quorum.glob("*"))], VOTERS)
    assert log.problems == ()
    assert log.batches
    outcome = json.loads(run.results_file.read_text())
    checked = {result["property"]: result["checked"] for result in outcome["results"]}
    for judged in ("final-logs", "lost-write", "leader-from-isr"):
        assert checked[judged] > 0, judged


def test_faults_of_zookeeper_are_refused_in_a_kraft_quorum_in_containers(tmp_path: Path) -> None:
    asked = (*KAFKA, "--kafka-version", KRAFT_VERSION, "--faults", "kill-zookeeper,delay-control")
    refused = nemesis(tmp_path, "run", SCENARIO, *asked)
    assert refused.returncode == 254
    assert "kill-zookeeper" in refused.stderr
    assert "(the cluster runs with KRaft and has no ZooKeeper)" in refused.stderr
    assert not (tmp_path / "store").exists()


LAST_REPLICA_STRUCK = """\
- {at_s: 4.0, fault: kill, target: broker-2, duration_s: 14.0}
- {at_s: 4.5, fault: kill, target: broker-3, duration_s: 14.0}
- {at_s: 10.0, fault: power-cut, target: broker-1, duration_s: 3.0, spares_last: false}
"""


@pytest.mark.nightly
def test_kafka_loses_what_the_last_replica_had_not_synced_and_that_is_known(
    tmp_path: Path,
) -> None:
    """KIP-966: Kafka 3.9 with ZooKeeper acknowledges what is not synced, and trusts the last member of the ISR."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(LAST_REPLICA_STRUCK)
    arguments = ("--seed", "1", "--time-limit", "34", "--plan", str(plan), "--engine", "inline")
    ran = valid_run(tmp_path, "machine-faults", *KAFKA, *arguments, timeout_s=500)
    assert "Known behaviour (KIP-966), not counted in the verdict: lost-write, " in ran.stdout

    run = latest(tmp_path)
    again = ("check", str(run), "--engine", "inline", "--known", "none")
    judged = nemesis(tmp_path, *again, timeout_s=200)
    assert judged.returncode == 1, judged.stdout
    outcome = json.loads((run / "results.json").read_text())
    broken = {item["property"] for item in outcome["results"] if item["verdict"] == "invalid"}
    assert "lost-write" in broken
    assert {finding["known"] for item in outcome["results"] for finding in item["findings"]} == {
        "KIP-966"
    }

"""Unmodified nodes of Apache Kafka 4.1.1, controllers and brokers of a KRaft quorum, on the runtime local."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from crc32c import crc32c

from nemesis.history.quorum_events import QuorumEvents
from nemesis.history.quorum_files import METADATA_LOG, SEGMENTS
from nemesis.history.quorum_log import committed, read_quorum_log
from nemesis.history.run_directory import RunDirectory
from nemesis.support.node_names import node_of
from tests.e2e.command import SCENARIO, events, latest, nemesis
from tests.e2e.kafka_jars import require_jars
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

VERSION: Final = "4.1.1"
KRAFT: Final = ("--target", "kafka", "--runtime", "local", "--kafka-version", VERSION)
FAULTS: Final = "partition,kill-controller,expire-session"
BROKERS: Final = 3
VOTERS: Final = 3
STRANGER: Final = 9
"""The id of a broker that does not exist."""

CONTROLLERS_STRUCK: Final = """\
- {at_s: 6.0, fault: kill-controller, duration_s: 6.0}
- {at_s: 18.0, fault: partition, shape: one-node, target: controller, duration_s: 6.0}
"""


@pytest.fixture(autouse=True, scope="module")
def _jars() -> None:
    """Kafka's jars, or a reason why they cannot be had here."""
    require_jars(VERSION)


def test_what_needs_zookeeper_is_refused_before_the_run(tmp_path: Path) -> None:
    refused = nemesis(
        tmp_path, "run", SCENARIO, *KRAFT, "--faults", "delay-control,add-broker,kill"
    )
    assert refused.returncode == 254
    assert "delay-control (the cluster runs with KRaft and has no ZooKeeper)" in refused.stderr
    assert "add-broker (the voters of the KRaft quorum are fixed)" in refused.stderr
    assert not (tmp_path / "store").exists()


def test_kafka_4_under_faults_is_valid_and_a_forged_election_is_not(tmp_path: Path) -> None:
    arguments = ("--seed", "2", "--time-limit", "32", "--faults", FAULTS, "--engine", "inline")
    valid_run(tmp_path, SCENARIO, *KRAFT, *arguments, timeout_s=400)

    run = RunDirectory.open(latest(tmp_path))
    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert {event["fault"] for event in applied} == set(FAULTS.split(","))
    assert {event["effect"] for event in applied} == {"measured"}
    assert not list(run.zookeeper.glob("*"))

    outcome = json.loads(run.results_file.read_text())
    hidden = {item["property"]: item["without"] for item in outcome["not_observed"]}
    assert hidden["single-controller"] == ["metadata-log"]
    checked = {result["property"]: result["checked"] for result in outcome["results"]}
    for judged in ("leader-from-isr", "final-logs", "lost-write", "deletion", "reassignment"):
        assert checked[judged] > 0, judged

    log = committed([read_quorum_log(voter) for voter in sorted(run.quorum.glob("*"))], VOTERS)
    assert log.problems == ()
    written = list(QuorumEvents().events(log.batches))
    controllers = {event.controller_id for event in written if event.path == "/controller"}
    killed = {event["targets"][0] for event in applied if event["fault"] == "kill-controller"}
    assert killed <= {f"broker-{broker}" for broker in controllers}
    assert len(killed) < len(controllers - {None}), "nothing was elected in place of the dead"

    state = next(event for event in reversed(written) if (event.path or "").endswith("/state"))
    _forge_election(run, state.topic_id or "", state.partition or 0, log.batches[-1].epoch)
    judged_again = nemesis(tmp_path, "check", str(run.path), "--engine", "inline", timeout_s=200)
    assert judged_again.returncode == 1, judged_again.stdout
    assert f"whose leader {STRANGER} is not in its ISR" in judged_again.stdout
    assert f"{state.topic}-{state.partition}" in judged_again.stdout


def test_controllers_of_their_own_are_killed_and_cut_off_and_no_broker_with_them(
    tmp_path: Path,
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(CONTROLLERS_STRUCK)
    arguments = ("--time-limit", "34", "--plan", str(plan), "--engine", "inline")
    asked = (*KRAFT, "--controllers", str(VOTERS))
    valid_run(tmp_path, SCENARIO, *asked, "--seed", "1", *arguments, timeout_s=400)

    run = RunDirectory.open(latest(tmp_path))
    applied = [event for event in events(run.path, "nemesis") if event["kind"] == "fault-applied"]
    assert [event["fault"] for event in applied] == ["kill-controller", "partition"]
    assert {event["effect"] for event in applied} == {"measured"}
    struck = {node for event in applied for node in event["targets"]}
    assert {node.rpartition("-")[0] for node in struck} == {"controller"}
    assert sorted(voter.name for voter in run.quorum.glob("*")) == [
        f"controller-{number}" for number in range(1, VOTERS + 1)
    ]
    log = committed([read_quorum_log(voter) for voter in sorted(run.quorum.glob("*"))], VOTERS)
    assert log.problems == ()
    written = list(QuorumEvents().events(log.batches))
    elected = [node_of(event.controller_id) for event in written if event.controller_id is not None]
    assert set(elected) <= {f"controller-{number}" for number in range(1, VOTERS + 1)}
    assert len(elected) >= 3, "each fault deposes the active controller"
    epochs: dict[str, set[int | None]] = {}
    for event in written:
        if "ids" in (event.path or "") and event.zk_op == "create":
            epochs.setdefault(event.path or "", set()).add(event.broker_epoch)
    assert len(epochs) == BROKERS
    assert {len(of_broker) for of_broker in epochs.values()} == {1}, (
        "a broker that lives on keeps its epoch, even if it was fenced for a while"
    )

    outcome = json.loads(run.results_file.read_text())
    checked = {result["property"]: result["checked"] for result in outcome["results"]}
    assert checked["quorum-commits-stay"] > 10
    _forge_high_watermark(run, behind=log.batches[-1].last_offset)
    judged_again = nemesis(tmp_path, "check", str(run.path), "--engine", "inline", timeout_s=200)
    assert judged_again.returncode == 1, judged_again.stdout
    assert "quorum-commits-stay" in judged_again.stdout
    assert "has its first record at offset" in judged_again.stdout


@pytest.mark.nightly
def test_a_voter_that_starts_again_from_a_snapshot_leaves_the_history_whole(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("- {at_s: 8.0, fault: kill, target: voters-minority, duration_s: 6.0}\n")
    arguments = ("--time-limit", "26", "--plan", str(plan), "--engine", "inline")
    valid_run(tmp_path, "kraft", "--seed", "1", *arguments, timeout_s=400)
    run = RunDirectory.open(latest(tmp_path))
    logs = [read_quorum_log(voter) for voter in sorted(run.quorum.glob("*"))]
    assert all(log.snapshots for log in logs)
    complete, [shortened, *others] = logs[0], logs[1:]
    snapshot = shortened.snapshots[0]
    later = tuple(b for b in shortened.batches if b.base_offset >= snapshot.end_offset)
    behind = replace(shortened, batches=later)
    assert committed([complete, behind, *others], VOTERS) == committed(logs, VOTERS)
    assert committed([complete, behind], VOTERS).problems == ()


def _forge_high_watermark(run: RunDirectory, *, behind: int) -> None:
    """Let the first leader have answered a high watermark that is higher than all that was written."""
    file = run.raw_file("harness")
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    number, sample = next(
        (number, event)
        for number, event in enumerate(map(json.loads, lines))
        if event["kind"] == "quorum-sample" and event.get("high_watermark") is not None
    )
    lines[number] = json.dumps({**sample, "high_watermark": behind + 1000}) + "\n"
    file.write_text("".join(lines), encoding="utf-8")


def _forge_election(run: RunDirectory, topic_id: str, partition: int, epoch: int) -> None:
    """Append to the logs of all voters that a broker which is not a replica leads the partition."""
    for voter in sorted((run.path / "data").glob(f"broker-*/{METADATA_LOG}")):
        [segment] = voter.glob(SEGMENTS)
        offset = read_quorum_log(voter).batches[-1].last_offset + 1
        with segment.open("ab") as file:
            file.write(_batch(offset, epoch, _election(topic_id, partition)))


def _election(topic_id: str, partition: int) -> bytes:
    """A PartitionChangeRecord of version 0 with one tagged field, the leader."""
    frame, leader = bytes([1, 5, 0]), bytes([1, 1, 4]) + struct.pack(">i", STRANGER)
    return frame + struct.pack(">i", partition) + bytes.fromhex(topic_id.replace("-", "")) + leader


def _batch(offset: int, epoch: int, value: bytes) -> bytes:
    """A record batch of one record without a key; its length fits into one byte."""
    body = bytes([0, 0, 0, 1, len(value) * 2]) + value + bytes([0])
    record = bytes([len(body) * 2]) + body
    covered = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + record
    head = struct.pack(">ibI", epoch, 2, crc32c(covered))
    return struct.pack(">qi", offset, len(head) + len(covered)) + head + covered

"""Operators use Apache Kafka's own tools on a cluster of the reference: three brokers with two log directories each."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.kafka_tools import needs_kafka_tools, run_tool
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = [pytest.mark.e2e, needs_kafka_tools]

DEADLINE_S: Final = 30.0
TOOLS: Final = "org.apache.kafka.tools"
_PARTITION: Final = re.compile(
    r"Partition: (\d+)\tLeader: (\S+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)"
)


class Cluster(LocalCluster):
    """The cluster, as the tools see it."""

    def topics(self, *arguments: str) -> str:
        return self._run(f"{TOOLS}.TopicCommand", *arguments)

    def configs(self, *arguments: str) -> str:
        return self._run("kafka.admin.ConfigCommand", *arguments)

    def reassign(self, *arguments: str, exit_code: int = 0) -> str:
        command = f"{TOOLS}.reassign.ReassignPartitionsCommand"
        return self._run(command, *arguments, exit_code=exit_code)

    def elect(self, *arguments: str) -> str:
        command = f"{TOOLS}.LeaderElectionCommand"
        return self._run(command, "--election-type", "preferred", *arguments)

    def produce(self, topic: str, lines: str, *arguments: str) -> None:
        self._run("kafka.tools.ConsoleProducer", "--topic", topic, *arguments, stdin=lines)

    def verifiable_producer(self, topic: str, count: int) -> list[dict[str, Any]]:
        """The events that it prints."""
        limits = ("--max-messages", str(count), "--acks", "-1")
        printed = self._run(f"{TOOLS}.VerifiableProducer", "--topic", topic, *limits)
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]

    def perf_test(self, topic: str, count: int) -> str:
        return run_tool(
            f"{TOOLS}.ProducerPerformance", "--topic", topic, "--num-records", str(count),
            "--record-size", "100", "--throughput", "-1",
            "--producer-props", f"bootstrap.servers={self.bootstrap}", "acks=all", "batch.size=1000",
        )  # fmt: skip

    def offsets(self, topic: str, timestamp: str = "latest") -> list[int]:
        """Of each partition."""
        printed = self._run(f"{TOOLS}.GetOffsetShell", "--topic", topic, "--time", timestamp)
        return [int(o) for o in re.findall(rf"^{topic}:\d+:(\d+)$", printed, re.MULTILINE)]

    def log_dirs(self, topic: str) -> dict[int, list[tuple[str, dict[str, Any]]]]:
        """The replicas of each broker, with their log directories."""
        printed = self._run(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic)
        (line,) = [line for line in printed.splitlines() if line.startswith("{")]
        return {
            broker["broker"]: [
                (log_dir["logDir"], replica)
                for log_dir in broker["logDirs"]
                for replica in log_dir["partitions"]
            ]
            for broker in json.loads(line)["brokers"]
        }

    def create(self, topic: str, *arguments: str) -> None:
        """Create it and return once each partition has a leader."""
        self.topics("--create", "--topic", topic, *arguments)
        until(lambda: {"none"}.isdisjoint(leader for leader, *_ in self.described(topic)))

    def described(self, topic: str) -> list[tuple[str, str, set[str]]]:
        """Leader, replicas and ISR of each partition."""
        partitions = _PARTITION.findall(self.topics("--describe", "--topic", topic))
        return [(leader, replicas, set(isr.split(","))) for _, leader, replicas, isr in partitions]

    def _run(self, command: str, *arguments: str, **options: Any) -> str:
        return run_tool(command, "--bootstrap-server", self.bootstrap, *arguments, **options)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "that did not happen"


def plan_file(tmp_path: Path, topic: str, replicas: Sequence[int], **more: object) -> str:
    """What ``--reassignment-json-file`` names: partition 0 of the topic gets these replicas."""
    partition: Mapping[str, object] = {
        "topic": topic,
        "partition": 0,
        "replicas": list(replicas),
        **more,
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    return str(path)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster, tmp_path_factory.mktemp("kafka-tools"), {}, log_dirs=2) as cluster:
        yield cluster


def test_topics_are_created_grown_and_deleted(cluster: Cluster) -> None:
    cluster.create("grown", "--partitions", "2", "--replication-factor", "3")
    cluster.topics("--alter", "--topic", "grown", "--partitions", "3")
    until(lambda: [len(isr) for _, _, isr in cluster.described("grown")] == [3, 3, 3])
    assert "grown" in cluster.topics("--list").splitlines()
    cluster.topics("--delete", "--topic", "grown")
    until(lambda: "grown" not in cluster.topics("--list").splitlines())


def test_settings_of_topics_and_brokers_are_changed_and_described(cluster: Cluster) -> None:
    cluster.create("set", "--config", "retention.ms=7000")
    topic = ("--entity-type", "topics", "--entity-name", "set")
    brokers = ("--entity-type", "brokers", "--entity-default")
    cluster.configs(
        "--alter", *topic, "--add-config", "min.insync.replicas=2,max.message.bytes=5000"
    )
    cluster.configs("--alter", *topic, "--delete-config", "retention.ms")
    cluster.configs("--alter", *brokers, "--add-config", "log.retention.ms=86400000")
    described = cluster.configs("--describe", *topic)
    assert re.findall(r"^  (\S+)=(\S+) sensitive", described, re.MULTILINE) == [
        ("max.message.bytes", "5000"),
        ("min.insync.replicas", "2"),
    ]
    assert "DYNAMIC_TOPIC_CONFIG:min.insync.replicas=2" in described
    until(lambda: "log.retention.ms=86400000" in cluster.configs("--describe", *brokers))


def test_replicas_move_and_the_preferred_leader_is_elected(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create("moved", "--replica-assignment", "1:2")
    cluster.produce("moved", "first\nsecond\n")
    plan = ("--reassignment-json-file", plan_file(tmp_path, "moved", (3, 1)))
    assert "Successfully started" in cluster.reassign("--execute", *plan)
    verified = "Reassignment of partition moved-0 is completed."
    until(lambda: verified in cluster.reassign("--verify", *plan))
    assert cluster.described("moved") == [("1", "3,1", {"1", "3"})]
    assert "No partition reassignments found." in cluster.reassign("--list")
    elected = cluster.elect("--topic", "moved", "--partition", "0")
    assert "Successfully completed leader election (PREFERRED)" in elected
    assert cluster.described("moved") == [("3", "3,1", {"1", "3"})]
    assert "already elected" in cluster.elect("--topic", "moved", "--partition", "0")
    assert cluster.offsets("moved") == [2]
    assert cluster.offsets("moved", "max-timestamp") in ([0], [1])


def test_a_throttle_is_refused_in_one_sentence_and_nothing_moves(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create("still", "--replica-assignment", "1:2")
    plan = plan_file(tmp_path, "still", (2, 3))
    printed = cluster.reassign(
        "--execute", "--throttle", "100000", "--reassignment-json-file", plan, exit_code=1
    )
    refusal = r"Unknown topic config name: \S+\.throttled\.replicas \(replication is not throttled here\)$"
    assert re.search(refusal, printed, re.MULTILINE), printed
    assert cluster.described("still") == [("1", "1,2", {"1", "2"})]


def test_a_replica_moves_to_another_log_directory(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("kept", "--replica-assignment", "1:2")
    cluster.produce("kept", "record\n")
    ((before, _),) = cluster.log_dirs("kept")[1]
    (target,) = {str(path) for path in Path(before).parent.iterdir()} - {before}
    plan = plan_file(tmp_path, "kept", (1, 2), log_dirs=[target, "any"])
    cluster.reassign("--execute", "--reassignment-json-file", plan)
    until(lambda: [log_dir for log_dir, _ in cluster.log_dirs("kept")[1]] == [target])
    verified = cluster.reassign("--verify", "--reassignment-json-file", plan)
    assert "Reassignment of replica kept-0-1 completed successfully." in verified


def test_each_record_that_the_producers_send_is_in_the_offsets_and_on_each_disk(
    cluster: Cluster,
) -> None:
    cluster.create("sent", "--partitions", "2", "--replication-factor", "3")
    cluster.produce("sent", "a\nb\nc\n", "--producer-property", "acks=all")
    events = cluster.verifiable_producer("sent", 500)
    assert (events[-1]["sent"], events[-1]["acked"]) == (500, 500)
    assert "1000 records sent" in cluster.perf_test("sent", 1000)
    assert sum(cluster.offsets("sent")) == 1503
    assert cluster.offsets("sent", "earliest") == [0, 0]
    replicas = cluster.log_dirs("sent")
    assert list(replicas) == [1, 2, 3]
    for stored in replicas.values():
        assert [replica["offsetLag"] for _, replica in stored] == [0, 0]
        assert all(replica["size"] > 0 for _, replica in stored)

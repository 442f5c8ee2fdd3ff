"""confluent-kafka's admin client describes a real cluster and elects leaders in it; brokers stop in order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from nemesis.reference.model import TopicPartition as Partition
from nemesis.reference.zk import preferred_replica_election, zk_data
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

DEADLINE_S = 30.0
GRACE_S = 20.0
PROPERTIES = {
    "auto.leader.rebalance.enable": False,
    "broker.rack": "r",
    "replica.fetch.backoff.ms": 100,
}


class Cluster(LocalCluster):
    """Three brokers, an admin client, and a way to stop and start the brokers."""

    def create_topic(self, name: str, *replicas: int) -> None:
        topic = NewTopic(name, num_partitions=1, replica_assignment=[list(replicas)])
        self.admin.create_topics([topic])[name].result(DEADLINE_S)
        self.until_led(name, replicas[0], *replicas)

    def until_led(self, name: str, leader: int, *isr: int) -> None:
        def is_led() -> bool:
            partitions = self.admin.list_topics(name, timeout=DEADLINE_S).topics[name].partitions
            partition_ = partitions.get(0)
            return (
                partition_ is not None
                and partition_.leader == leader
                and set(partition_.isrs) == set(isr)
            )

        until(is_led)

    def terminate(self, broker: int) -> dict[str, object]:
        return self.runner.run(
            self.runtime.processes.terminate(f"broker-{broker}", grace_s=GRACE_S)
        )

    def start(self, broker: int) -> None:
        assert self.runner.run(self.runtime.processes.restart(f"broker-{broker}"))["answered"]

    def elections(self, topic: str) -> list[str]:
        """How each election of the topic came about, in the order of leader epochs, as the controllers traced it."""
        lines = (
            json.loads(line)
            for trace in (self.directory / "raw").glob("broker-*.jsonl")
            for line in trace.read_text().splitlines()
        )
        elections = [
            (event["leader_epoch"], event["strategy"])
            for event in lines
            if event["kind"] == "leader-elected" and event["topic"] == topic
        ]
        return [str(strategy) for _, strategy in sorted(elections)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster, tmp_path_factory.mktemp("elections"), PROPERTIES) as cluster:
        yield cluster


def test_the_cluster_is_described(cluster: Cluster) -> None:
    until(lambda: len(cluster.admin.list_topics(timeout=DEADLINE_S).brokers) == 3)
    described = cluster.admin.describe_cluster().result(DEADLINE_S)
    assert described.cluster_id
    assert sorted(node.id for node in described.nodes) == [1, 2, 3]
    assert {node.rack for node in described.nodes} == {"r"}
    assert described.controller.id in {1, 2, 3}


def test_a_broker_that_stops_is_let_go_and_leads_again_when_asked(cluster: Cluster) -> None:
    cluster.create_topic("t", 2, 3)
    assert cluster.terminate(2)["ended_by"] == "SIGTERM"
    cluster.until_led("t", 3, 3)
    assert cluster.elections("t")[:2] == ["new", "controlled-shutdown"]
    cluster.start(2)
    cluster.until_led("t", 3, 2, 3)
    partition = TopicPartition("t", 0)
    for expected in (None, "ELECTION_NOT_NEEDED"):
        elected = cluster.admin.elect_leaders(ElectionType.PREFERRED, [partition])
        error = elected.result(DEADLINE_S)[partition]
        assert (None if error is None else error.name()) == expected
    cluster.until_led("t", 2, 2, 3)
    assert cluster.elections("t")[-1] == "preferred"


def test_what_cannot_be_elected_is_told_for_each_partition(cluster: Cluster) -> None:
    cluster.create_topic("u", 1, 2)
    asked = [TopicPartition("u", 0), TopicPartition("absent", 0)]
    results = cluster.admin.elect_leaders(ElectionType.UNCLEAN, asked).result(DEADLINE_S)
    names = {topic_partition.topic: error.name() for topic_partition, error in results.items()}
    assert names == {"u": "ELECTION_NOT_NEEDED", "absent": "UNKNOWN_TOPIC_OR_PART"}


def test_the_znode_elects_preferred_leaders(cluster: Cluster) -> None:
    cluster.create_topic("v", 2, 1)
    cluster.terminate(2)
    cluster.until_led("v", 1, 1)
    cluster.start(2)
    cluster.until_led("v", 1, 1, 2)
    zookeeper = KazooClient(cluster.zookeeper)
    zookeeper.start()
    try:
        asked = preferred_replica_election.encode([Partition("v", 0)])
        zookeeper.create(zk_data.PREFERRED_REPLICA_ELECTION, asked)
        cluster.until_led("v", 2, 1, 2)
        until(lambda: zookeeper.exists(zk_data.PREFERRED_REPLICA_ELECTION) is None)
    finally:
        zookeeper.stop()
        zookeeper.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)

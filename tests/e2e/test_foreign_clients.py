"""kcat and confluent-kafka, which know nothing of us, use a real cluster of three brokers.

Keys, headers and every compression go in with one client and come out with the other. librdkafka drops
a compression silently when it believes that the broker cannot have it, so the codec bits of the batch
on disk are read too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from nemesis.reference.protocol.record_batch import iter_batches
from tests.e2e.confluent_messages import records as without_error
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_BITS = 0x07
COUNT = 40
DEADLINE_S = 30.0

Message = tuple[str, str, dict[str, str]]
MESSAGES: list[Message] = [
    (f"key-{n}", f"value-{n} " + "x" * 100, {"number": str(n), "from": "far"}) for n in range(COUNT)
]


class Cluster(LocalCluster):
    """Three brokers, their addresses and their files."""

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Create it with three replicas and return once every partition has a leader."""
        topic = NewTopic(name, num_partitions=partitions, replication_factor=3)
        self.admin.create_topics([topic], operation_timeout=DEADLINE_S)[name].result(DEADLINE_S)
        deadline = time.monotonic() + DEADLINE_S
        while not self._has_leaders(name, partitions):
            assert time.monotonic() < deadline, f"{name} has no leader"
            time.sleep(0.05)

    def _has_leaders(self, name: str, partitions: int) -> bool:
        topic = self.admin.list_topics(name, timeout=DEADLINE_S).topics[name]
        return len(topic.partitions) == partitions and all(
            partition.leader > 0 for partition in topic.partitions.values()
        )

    def stored_codecs(self, topic: str) -> list[set[int]]:
        """The codec bits of the batches in the topic's partition 0, on each replica."""
        segments = sorted(self.directory.glob(f"data/*/{topic}-0/{0:020d}.log"))
        return [
            {batch.attributes & CODEC_BITS for batch in iter_batches(segment.read_bytes())}
            for segment in segments
        ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(
        Cluster, tmp_path_factory.mktemp("foreign-clients"), {"min.insync.replicas": 2}
    ) as cluster:
        yield cluster


needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


def kcat_produce(cluster: Cluster, topic: str, codec: str) -> None:
    """kcat gives the messages of one invocation the same headers, so there is one invocation per half."""
    for half in (MESSAGES[::2], MESSAGES[1::2]):
        lines = "".join(f"{key}:{value}\n" for key, value, _ in half)
        subprocess.run(
            [
                "kcat", "-P", "-b", cluster.bootstrap, "-t", topic, "-p", "0", "-K", ":",
                "-H", "from=far", "-z", codec, "-X", "acks=all", "-X", "linger.ms=50",
            ],
            input=lines.encode(), check=True, timeout=DEADLINE_S, capture_output=True,
        )  # fmt: skip


def kcat_consume(cluster: Cluster, topic: str) -> list[Message]:
    """Everything in partition 0, to its end."""
    done = subprocess.run(
        ["kcat", "-C", "-b", cluster.bootstrap, "-t", topic, "-p", "0", "-e", "-q", "-J"],
        check=True, timeout=DEADLINE_S, capture_output=True,
    )  # fmt: skip
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["offset"] for record in records] == list(range(len(records)))
    return [
        (r["key"], r["payload"], dict(zip(r["headers"][::2], r["headers"][1::2], strict=True)))
        for r in records
    ]


def confluent_produce(cluster: Cluster, topic: str, codec: str) -> None:
    failures: list[object] = []
    producer = Producer(
        cluster.client | {"acks": "all", "compression.type": codec, "linger.ms": 50}
    )
    for key, value, headers in MESSAGES:
        producer.produce(
            topic,
            key=key,
            value=value,
            headers=dict(headers),
            partition=0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(DEADLINE_S) == 0
    assert failures == []


def confluent_consume(cluster: Cluster, topic: str, count: int) -> list[Message]:
    consumer = Consumer(
        cluster.client | {"group.id": "none", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages: list[Message] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(messages) < count and time.monotonic() < deadline:
            for message in without_error(consumer.consume(count, timeout=1.0)):
                headers = {name: value.decode() for name, value in message.headers() or []}
                messages.append((message.key().decode(), message.value().decode(), headers))
        return messages
    finally:
        consumer.close()


@needs_kcat
@pytest.mark.parametrize("codec", CODECS)
def test_what_confluent_kafka_produces_kcat_consumes(cluster: Cluster, codec: str) -> None:
    topic = f"confluent-{codec}"
    cluster.create_topic(topic)

    confluent_produce(cluster, topic, codec)

    assert kcat_consume(cluster, topic) == MESSAGES
    assert {CODECS[codec]} in cluster.stored_codecs(topic)


@needs_kcat
@pytest.mark.parametrize("codec", CODECS)
def test_what_kcat_produces_confluent_kafka_consumes(cluster: Cluster, codec: str) -> None:
    topic = f"kcat-{codec}"
    cluster.create_topic(topic)

    kcat_produce(cluster, topic, codec)

    expected = [(k, v, {"from": "far"}) for k, v, _ in MESSAGES[::2] + MESSAGES[1::2]]
    assert confluent_consume(cluster, topic, COUNT) == expected
    assert {CODECS[codec]} in cluster.stored_codecs(topic)


def test_every_replica_stores_the_same_batches(cluster: Cluster) -> None:
    cluster.create_topic("replicated")

    confluent_produce(cluster, "replicated", "lz4")

    deadline = time.monotonic() + DEADLINE_S
    while cluster.stored_codecs("replicated") != [{CODECS["lz4"]}] * 3:
        assert time.monotonic() < deadline, cluster.stored_codecs("replicated")
        time.sleep(0.05)
    segments = sorted(cluster.directory.glob(f"data/*/replicated-0/{0:020d}.log"))
    deadline = time.monotonic() + DEADLINE_S
    while len({segment.read_bytes() for segment in segments}) > 1:
        assert time.monotonic() < deadline, "the replicas differ"
        time.sleep(0.05)


def test_a_topic_that_exists_is_refused(cluster: Cluster) -> None:
    cluster.create_topic("twice")
    topic = NewTopic("twice", num_partitions=1, replication_factor=3)

    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        cluster.admin.create_topics([topic])["twice"].result(DEADLINE_S)


def test_kcat_lists_brokers_topics_and_the_controller(cluster: Cluster) -> None:
    cluster.create_topic("listed", partitions=3)

    done = subprocess.run(
        ["kcat", "-L", "-J", "-b", cluster.bootstrap],
        check=True, timeout=DEADLINE_S, capture_output=True,
    )  # fmt: skip

    metadata = json.loads(done.stdout)
    assert sorted(broker["id"] for broker in metadata["brokers"]) == [1, 2, 3]
    assert metadata["controllerid"] in (1, 2, 3)
    (listed,) = (topic for topic in metadata["topics"] if topic["topic"] == "listed")
    assert [partition["partition"] for partition in listed["partitions"]] == [0, 1, 2]
    assert {replica["id"] for p in listed["partitions"] for replica in p["replicas"]} == {1, 2, 3}


def test_a_topic_is_created_even_if_the_client_does_not_wait(cluster: Cluster) -> None:
    topic = NewTopic("unawaited", num_partitions=1, replication_factor=3)
    admin = AdminClient(cluster.client)

    admin.create_topics([topic], operation_timeout=0)["unawaited"].result(DEADLINE_S)

    deadline = time.monotonic() + DEADLINE_S
    while "unawaited" not in admin.list_topics(timeout=DEADLINE_S).topics:
        assert time.monotonic() < deadline, "the topic was not created"
        time.sleep(0.05)


def test_acks_0_and_acks_1_arrive(cluster: Cluster) -> None:
    cluster.create_topic("weak")
    for acks in ("0", "1"):
        producer = Producer(cluster.client | {"acks": acks})
        producer.produce("weak", key=acks, value=acks, partition=0)
        assert producer.flush(DEADLINE_S) == 0

    expected: list[Message] = [("0", "0", {}), ("1", "1", {})]
    assert confluent_consume(cluster, "weak", len(expected)) == expected

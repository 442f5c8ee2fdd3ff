"""Idempotent producers that know nothing of us: confluent-kafka, kafka-python and aiokafka, on one cluster of three.

Each gets a producer id of its own, and what it sends stands in the log once, in the order of its sequence numbers. What
the logs hold is read from the files of every replica.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from nemesis.reference.protocol.record_batch import RecordBatchHeader, iter_batches
from tests.e2e.local_cluster import LocalCluster, running

MISSING = "a client of the dev extra is missing: run .ci/install --tests"
aiokafka = pytest.importorskip("aiokafka", reason=MISSING)
with warnings.catch_warnings():  # it reads its schemas by a call that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason=MISSING)

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")]

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_BITS = 0x07
COUNT = 60
DEADLINE_S = 30.0


class Cluster(LocalCluster):
    """Three brokers and their files."""

    def create_topic(self, name: str) -> None:
        topic = NewTopic(name, num_partitions=1, replication_factor=3)
        self.admin.create_topics([topic], operation_timeout=DEADLINE_S)[name].result(DEADLINE_S)

    def stored(self, topic: str) -> list[RecordBatchHeader]:
        """The batches of partition 0, the same on all replicas once they have all of it."""
        segments = sorted(self.directory.glob(f"data/*/{topic}-0/{0:020d}.log"))
        assert len(segments) == 3
        deadline = time.monotonic() + DEADLINE_S
        while len({segment.read_bytes() for segment in segments}) > 1:
            assert time.monotonic() < deadline, "the replicas differ"
            time.sleep(0.05)
        return list(iter_batches(segments[0].read_bytes()))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(
        Cluster, tmp_path_factory.mktemp("idempotent-clients"), {"min.insync.replicas": 2}
    ) as cluster:
        yield cluster


def check(batches: list[RecordBatchHeader], *, codec: int = 0) -> int:
    """All records once, in the order of their sequence numbers, of one producer; return its id."""
    assert {batch.attributes & CODEC_BITS for batch in batches} == {codec}
    (producer,) = {(batch.producer_id, batch.producer_epoch) for batch in batches}
    assert producer[0] >= 0
    expected = 0
    for batch in batches:
        assert batch.base_sequence == batch.base_offset == expected
        expected += batch.record_count
    assert expected == COUNT
    return producer[0]


@pytest.mark.parametrize("codec", CODECS)
def test_confluent_kafka_is_idempotent_with_every_codec(cluster: Cluster, codec: str) -> None:
    topic = f"confluent-{codec}"
    cluster.create_topic(topic)
    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.num.messages": 7,
        }
    )
    for number in range(COUNT):
        producer.produce(
            topic,
            value=f"{number} ".encode() + b"x" * 200,
            partition=0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(DEADLINE_S) == 0
    assert failures == []
    check(cluster.stored(topic), codec=CODECS[codec])


def test_kafka_python_is_idempotent(cluster: Cluster) -> None:
    cluster.create_topic("kafka-python")
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), enable_idempotence=True, batch_size=500
    )
    try:
        sent = [
            producer.send("kafka-python", f"{n} ".encode() + b"x" * 100, partition=0)
            for n in range(COUNT)
        ]
        producer.flush(DEADLINE_S)
        assert [future.get(DEADLINE_S).offset for future in sent] == list(range(COUNT))
    finally:
        producer.close()
    check(cluster.stored("kafka-python"))


def test_aiokafka_is_idempotent(cluster: Cluster) -> None:
    cluster.create_topic("aiokafka")

    async def produce() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, enable_idempotence=True, max_batch_size=500
        )
        await producer.start()
        try:
            sent = [
                await producer.send("aiokafka", f"{n} ".encode() + b"x" * 100, partition=0)
                for n in range(COUNT)
            ]
            return [(await future).offset for future in sent]
        finally:
            await producer.stop()

    offsets = asyncio.run(asyncio.wait_for(produce(), DEADLINE_S))
    assert offsets == list(range(COUNT))
    check(cluster.stored("aiokafka"))


def test_no_two_producers_had_the_same_id(cluster: Cluster) -> None:
    topics = [f"confluent-{codec}" for codec in CODECS] + ["kafka-python", "aiokafka"]
    ids = [check(cluster.stored(t), codec=CODECS.get(t[10:], 0)) for t in topics]
    assert len(set(ids)) == len(ids)

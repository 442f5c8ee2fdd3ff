"""confluent-kafka writes compacted topics on a real cluster, with each codec, and reads what cleaners have left."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from nemesis.reference.protocol.record_batch import iter_batches
from tests.e2e.confluent_messages import records as without_error
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
DEADLINE_S = 30.0
KEYS = 7
COUNT = 400
AT_A_TIME = 20


class Cluster(LocalCluster):
    """Three brokers that compact whatever they can, at once."""

    def create(self, topic: str, **config: str) -> None:
        config = {"cleanup.policy": "compact"} | config
        new = NewTopic(topic, num_partitions=1, replication_factor=3, config=config)
        self.admin.create_topics([new], operation_timeout=DEADLINE_S)[topic].result(DEADLINE_S)

    def write(self, topic: str, records: list[tuple[str, str | None]], codec: str) -> None:
        """Write records, so many in a batch."""
        failed: list[object] = []
        producer = Producer(
            self.client | {"acks": "all", "compression.type": codec, "linger.ms": 50}
        )
        for start in range(0, len(records), AT_A_TIME):
            for key, value in records[start : start + AT_A_TIME]:
                producer.produce(
                    topic,
                    key=key,
                    value=value,
                    partition=0,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
            assert producer.flush(DEADLINE_S) == 0
        assert failed == []

    def read(self, topic: str) -> list[tuple[int, str, str | None]]:
        """Offset, key and value of all that a new consumer sees."""
        consumer = Consumer(
            self.client | {"group.id": "none", "enable.auto.commit": False, "check.crcs": True}
        )
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)
            consumer.assign([TopicPartition(topic, 0, 0)])
            records: list[tuple[int, str, str | None]] = []
            deadline = time.monotonic() + DEADLINE_S
            while not records or records[-1][0] < end - 1:
                assert time.monotonic() < deadline, (
                    f"{topic} is read up to {records[-1:]}, not {end}"
                )
                for message in without_error(consumer.consume(1000, timeout=0.2)):
                    value = message.value()
                    text = None if value is None else value.decode()
                    records.append((message.offset(), message.key().decode(), text))
            return records
        finally:
            consumer.close()

    def until_read(self, topic: str, is_it: object) -> list[tuple[int, str, str | None]]:
        """Read again and again until it is as wanted."""
        assert callable(is_it)
        deadline = time.monotonic() + DEADLINE_S
        while not is_it(records := self.read(topic)):
            assert time.monotonic() < deadline, f"{topic} still has {records}"
            time.sleep(0.2)
        return records

    def stored(self, topic: str) -> list[set[tuple[int, bool]]]:
        """Of each replica, the codecs of its batches and whether records were taken from them."""
        return [
            {
                (batch.attributes & 7, 0 < batch.record_count <= batch.last_offset_delta)
                for segment in sorted(log.glob("*.log"))
                for batch in iter_batches(segment.read_bytes())
            }
            for log in sorted(self.directory.glob(f"data/*/{topic}-0"))
        ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    properties = {
        "min.insync.replicas": 2,
        "log.segment.bytes": 4000,
        "log.cleaner.backoff.ms": 100,
        "log.cleaner.min.cleanable.ratio": 0,
        "log.segment.delete.delay.ms": 100,
    }
    with running(Cluster, tmp_path_factory.mktemp("compaction"), properties) as cluster:
        yield cluster


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_value_of_each_key_is_left(cluster: Cluster, codec: str) -> None:
    topic = f"compact-{codec}"
    cluster.create(topic)
    # A key that comes once in a while is alone left of its batch; "padding" does not shrink when it is compressed.
    records: list[tuple[str, str | None]] = [
        (f"key-{n}" if n % 19 == 0 else f"key-{n % KEYS}", f"{n}-{hash_of(n)}")
        for n in range(COUNT)
    ]
    cluster.write(topic, records, codec)
    left = cluster.until_read(topic, lambda read: len(read) < COUNT / 2)
    last = {key: (offset, value) for offset, (key, value) in enumerate(records)}
    assert {key: (offset, value) for offset, key, value in left} == last
    assert [offset for offset, _, _ in left] == sorted({offset for offset, _, _ in left})
    assert all(records[offset] == (key, value) for offset, key, value in left)
    deadline = time.monotonic() + DEADLINE_S
    while not all((CODECS[codec], True) in kinds for kinds in cluster.stored(topic)):
        assert time.monotonic() < deadline, cluster.stored(topic)
        time.sleep(0.2)
    assert len(cluster.stored(topic)) == 3


def test_what_is_deleted_is_gone_after_a_while(cluster: Cluster) -> None:
    cluster.create("tombstones", **{"delete.retention.ms": "500"})
    cluster.write("tombstones", [("gone", "value"), ("kept", "value"), ("gone", None)], "none")
    deadline = time.monotonic() + DEADLINE_S
    while any(key == "gone" for _, key, _ in cluster.read("tombstones")):
        assert time.monotonic() < deadline
        cluster.write("tombstones", [("other", hash_of(n) * 3) for n in range(100)], "none")
    assert any(key == "kept" for _, key, _ in cluster.read("tombstones"))


def test_a_record_without_a_key_is_refused(cluster: Cluster) -> None:
    cluster.create("keyed")
    errors: list[KafkaException] = []
    producer = Producer(cluster.client | {"acks": "all"})
    producer.produce("keyed", value=b"v", partition=0, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(DEADLINE_S) == 0
    assert [error.name() for error in errors] == ["INVALID_RECORD"]


def hash_of(number: int) -> str:
    """Some characters that no codec makes much shorter."""
    return "".join(f"{(number + 1) * 2654435761 * n % 2**32:08x}" for n in (1, 7, 31))

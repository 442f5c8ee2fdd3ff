"""A client that knows nothing of us (kafka-python) moves every replica of a partition to the other log directory.

Two real brokers with two log directories each, a producer that goes on meanwhile, and all records in one piece at the
end: in the files of the new directories, and for who reads them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from nemesis.reference.protocol.record_batch import iter_batches
from tests.e2e.confluent_messages import records as without_error
from tests.e2e.local_cluster import LocalCluster, running

MISSING = "a client of the dev extra is missing: run .ci/install --tests"
with warnings.catch_warnings():  # it reads its schemas by a call that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason=MISSING)

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")]

TOPIC = "moved"
DEADLINE_S = 30.0
BROKERS = (1, 2)
Placement = dict[tuple[int, str], bool]
"""By broker and log directory in which there is a log: whether it is a future one."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    slowly = {"replica.alter.log.dirs.io.max.bytes.per.second": 40_000}
    with running(LocalCluster, tmp_path, slowly, brokers=len(BROKERS), log_dirs=2) as cluster:
        yield cluster


def placement(admin: Any) -> tuple[Placement, set[tuple[int, str]]]:
    """Where the logs of the partition are, and all directories there are."""
    replicas: Placement = {}
    every = set()
    for broker in admin.describe_log_dirs():
        for directory in broker["log_dirs"]:
            replica = (broker["broker"], directory["log_dir"])
            every.add(replica)
            for topic in directory["topics"]:
                for partition in topic["partitions"]:
                    if topic["name"] == TOPIC:
                        replicas[replica] = partition["is_future_key"]
    return replicas, every


def until(condition: Callable[[], bool], event: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, event
        time.sleep(0.05)


def read(cluster: LocalCluster, count: int) -> list[bytes]:
    consumer = Consumer(cluster.client | {"group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes] = []
    try:
        while len(values) < count:
            messages = consumer.consume(1, timeout=DEADLINE_S)
            assert messages
            for message in without_error(messages):
                value = message.value()
                assert value is not None
                values.append(value)
    finally:
        consumer.close()
    return values


def test_every_replica_of_a_partition_moves_while_it_is_written_to(cluster: LocalCluster) -> None:
    topic = NewTopic(TOPIC, num_partitions=1, replication_factor=len(BROKERS))
    cluster.admin.create_topics([topic])[TOPIC].result(DEADLINE_S)
    producer = Producer(cluster.client | {"acks": "all", "batch.size": 2000})
    sent = [b"%d " % n + b"x" * 500 for n in range(120)]

    def send(values: list[bytes]) -> None:
        for value in values:
            producer.produce(TOPIC, value, partition=0)
        assert producer.flush(DEADLINE_S) == 0

    send(sent[:100])
    admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        before, every = placement(admin)
        assert len(before) == len(BROKERS)
        targets = every - before.keys()
        wanted = {(TOPIC, 0, broker): path for broker, path in targets}
        answers = admin.alter_replica_log_dirs(wanted)
        assert {error.errno for error in answers.values()} == {0}
        moving, _ = placement(admin)
        assert {replica: is_future for replica, is_future in moving.items() if is_future} == (
            dict.fromkeys(targets, True)
        )
        send(sent[100:])
        until(lambda: placement(admin)[0] == dict.fromkeys(targets, False), "not moved")
    finally:
        admin.close()

    def stored(path: str) -> list[int]:
        data = Path(path, f"{TOPIC}-0", f"{0:020d}.log").read_bytes()
        return [header.base_offset for header in iter_batches(data)]

    logs = [stored(path) for _, path in sorted(targets)]
    assert logs[0] == logs[1] != []
    assert read(cluster, len(sent)) == sent

"""Settings of topics and brokers are described and changed by confluent-kafka's AdminClient, on a real cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from kazoo.client import KazooClient

from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

DEADLINE_S = 30.0
MIN_ISR = "min.insync.replicas"
TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


class Cluster(LocalCluster):
    """Three brokers, and a client that asks each."""

    def set_as_old_tools_do(self, entity: str, configs: dict[str, str]) -> None:
        """Write settings and notification to ZooKeeper; for all brokers, which this AdminClient cannot name."""
        zookeeper = KazooClient(hosts=self.zookeeper)
        zookeeper.start(timeout=DEADLINE_S)
        try:
            path = f"/config/{entity}"
            zookeeper.ensure_path(path)
            zookeeper.set(path, json.dumps({"version": 1, "config": configs}).encode())
            changed = json.dumps({"version": 2, "entity_path": entity}).encode()
            zookeeper.create("/config/changes/config_change_", changed, sequence=True)
        finally:
            zookeeper.stop()
            zookeeper.close()

    def create(self, topic: str, **config: str) -> None:
        new = NewTopic(topic, num_partitions=1, replication_factor=3, config=config)
        self.admin.create_topics([new], operation_timeout=DEADLINE_S)[topic].result(DEADLINE_S)

    def set(self, kind: ResourceType, name: str, **options: Any) -> None:
        """Change settings incrementally; a value of None deletes."""
        resource = ConfigResource(kind, name, incremental_configs=entries(options.pop("configs")))
        (answer,) = self.admin.incremental_alter_configs([resource], **options).values()
        answer.result(DEADLINE_S)

    def replace(self, kind: ResourceType, name: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(kind, name, set_config=configs)
        with pytest.warns(DeprecationWarning, match="alter_configs"):
            (answer,) = self.admin.alter_configs([resource]).values()
        answer.result(DEADLINE_S)

    def describe(self, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
        (answer,) = self.admin.describe_configs([ConfigResource(kind, name)]).values()
        entries: dict[str, ConfigEntry] = answer.result(DEADLINE_S)
        return entries

    def error(self, topic: str, value: bytes = b"v") -> str | None:
        """What becomes of a produce under acks=all."""
        errors: list[Any] = []
        producer = Producer(self.client | {"acks": "all", "message.timeout.ms": 3000, "retries": 0})
        producer.produce(topic, value=value, partition=0, on_delivery=lambda e, _: errors.append(e))
        assert producer.flush(DEADLINE_S) == 0
        (error,) = errors
        return None if error is None else error.name()

    def until(self, topic: str, error: str | None, value: bytes = b"v") -> None:
        deadline = time.monotonic() + DEADLINE_S
        while (latest_error := self.error(topic, value)) != error:
            assert time.monotonic() < deadline, f"{topic}: {latest_error}, not {error}"


def entries(configs: dict[str, str | None]) -> list[ConfigEntry]:
    return [
        ConfigEntry(
            name,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for name, value in configs.items()
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster, tmp_path_factory.mktemp("configs"), {}) as cluster:
        yield cluster


def test_a_topic_is_created_with_settings_that_count_from_the_first_record(
    cluster: Cluster,
) -> None:
    cluster.create("small", **{"max.message.bytes": "100"})
    settings = cluster.describe(TOPIC, "small")
    assert settings["max.message.bytes"].value == "100"
    assert settings["max.message.bytes"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert settings["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    cluster.until("small", None)
    assert cluster.error("small", b"v" * 200) == "MSG_SIZE_TOO_LARGE"


def test_settings_of_a_topic_change_while_it_is_used(cluster: Cluster) -> None:
    cluster.create("changing")
    cluster.until("changing", None)
    cluster.set(TOPIC, "changing", configs={"max.message.bytes": "100", "flush.messages": "9"})
    cluster.until("changing", "MSG_SIZE_TOO_LARGE", b"v" * 200)
    cluster.set(TOPIC, "changing", configs={"max.message.bytes": None})
    cluster.until("changing", None, b"v" * 200)
    assert cluster.describe(TOPIC, "changing")["flush.messages"].value == "9"
    cluster.replace(TOPIC, "changing", {MIN_ISR: "2"})
    settings = cluster.describe(TOPIC, "changing")
    assert (settings[MIN_ISR].value, settings["flush.messages"].is_default) == ("2", True)


def test_settings_of_all_brokers_count_where_topics_have_none(cluster: Cluster) -> None:
    cluster.create("default")
    cluster.set_as_old_tools_do("brokers/<default>", {"message.max.bytes": "100"})
    try:
        cluster.until("default", "MSG_SIZE_TOO_LARGE", b"v" * 200)
        entry = cluster.describe(TOPIC, "default")["max.message.bytes"]
        assert (entry.value, entry.source) == (
            "100",
            ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
        )
        assert list(entry.synonyms) != []
    finally:
        cluster.set_as_old_tools_do("brokers/<default>", {})
    cluster.until("default", None, b"v" * 200)


def test_a_broker_tells_of_itself_and_is_changed(cluster: Cluster) -> None:
    settings = cluster.describe(BROKER, "2")
    assert settings["broker.id"].value == "2"
    assert (settings["broker.id"].is_read_only, settings[MIN_ISR].is_read_only) == (True, False)
    cluster.set(BROKER, "2", configs={MIN_ISR: "3"})
    deadline = time.monotonic() + DEADLINE_S
    while (entry := cluster.describe(BROKER, "2")[MIN_ISR]).value != "3":
        assert time.monotonic() < deadline
    assert entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG.value
    assert cluster.describe(BROKER, "1")[MIN_ISR].value == "1"


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (TOPIC, "changing", {"preallocate": "1"}, "INVALID_CONFIG"),
        (TOPIC, "changing", {MIN_ISR: "none"}, "INVALID_REQUEST"),
        (TOPIC, "absent", {MIN_ISR: "1"}, "UNKNOWN_TOPIC_OR_PART"),
        (BROKER, "1", {"num.io.threads": "2"}, "INVALID_REQUEST"),
    ],
)
def test_what_cannot_be_is_refused(
    cluster: Cluster, kind: ResourceType, name: str, configs: dict[str, str], code: str
) -> None:
    with pytest.raises(KafkaException) as refused:
        cluster.set(kind, name, configs=configs)
    assert refused.value.args[0].name() == code


def test_a_topic_is_not_created_with_a_setting_without_effect(cluster: Cluster) -> None:
    with pytest.raises(KafkaException) as refused:
        cluster.create("never", **{"compression.type": "zstd"})
    assert refused.value.args[0].name() == "INVALID_CONFIG"
    assert "compression.type" in refused.value.args[0].str()


def test_validating_only_changes_nothing(cluster: Cluster) -> None:
    cluster.set(TOPIC, "changing", configs={"segment.bytes": "999"}, validate_only=True)
    assert cluster.describe(TOPIC, "changing")["segment.bytes"].is_default

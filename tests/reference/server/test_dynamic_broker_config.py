"""The broker's settings that change while it runs: which come first, who is told, and what cannot be."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.log_config import ConfigType, ConfigValueError
from nemesis.reference.server import dynamic_broker_config
from nemesis.reference.server.config_helper import ConfigEntry, ConfigHelper
from nemesis.reference.server.dynamic_broker_config import DynamicBrokerConfig
from tests.reference.controller.cluster import config

MIN_ISR = "min.insync.replicas"


def test_the_brokers_own_comes_before_all_brokers_before_what_it_was_started_with() -> None:
    dynamic = DynamicBrokerConfig(config(1, **{MIN_ISR: 2}))
    dynamic.update_default_config({MIN_ISR: "3", "log.segment.bytes": "99"})
    assert (dynamic.current.min_insync_replicas, dynamic.current.log_segment_bytes) == (3, 99)
    dynamic.update_broker_config({MIN_ISR: "4"})
    assert dynamic.current.min_insync_replicas == 4
    dynamic.update_broker_config({})
    dynamic.update_default_config({})
    assert dynamic.current == dynamic.static


def test_who_has_to_act_is_told_of_changes_alone() -> None:
    dynamic = DynamicBrokerConfig(config(1))
    changes: list[tuple[KafkaConfig, KafkaConfig]] = []
    dynamic.add_reconfigurable(lambda former, current: changes.append((former, current)))
    dynamic.update_default_config({MIN_ISR: "1"})
    assert changes == []
    dynamic.update_broker_config({MIN_ISR: "2"})
    dynamic.update_broker_config({MIN_ISR: "2"})
    assert changes == [(dynamic.static, dynamic.current)]


def test_what_cannot_be_is_logged_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    dynamic = DynamicBrokerConfig(config(1))
    with caplog.at_level(logging.ERROR):
        dynamic.update_broker_config(
            {"num.io.threads": "2", MIN_ISR: "x", "log.segment.bytes": "99"}
        )
    assert dynamic.broker_configs == {"log.segment.bytes": "99"}
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "Cannot update these configs dynamically: num.io.threads",
        "Invalid value x for configuration min.insync.replicas: Not a number of type INT",
    ]


@pytest.mark.parametrize("name", ["num.io.threads", "broker.id", "min.insync.replica"])
def test_other_settings_cannot_be_changed(name: str) -> None:
    with pytest.raises(ConfigValueError, match=f"dynamically: {name}"):
        dynamic_broker_config.validate({MIN_ISR: "1", name: "1"})


def synonyms(entry: ConfigEntry) -> list[tuple[str, Any, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms]


def named(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (entry_,) = [entry for entry in entries if entry.name == name]
    return entry_


def test_a_topics_setting_is_told_with_all_that_it_would_be_otherwise() -> None:
    dynamic = DynamicBrokerConfig(config(1, **{"log.segment.bytes": 1000}))
    dynamic.update_broker_config({"log.segment.bytes": "2000"})
    dynamic.update_default_config({"log.segment.bytes": "3000"})
    helper = ConfigHelper(dynamic)
    entry = named(helper.topic_entries({"segment.bytes": "4000"}), "segment.bytes")
    assert (entry.value, entry.type, entry.read_only) == ("4000", ConfigType.INT, False)
    assert synonyms(entry) == [
        ("segment.bytes", "4000", 1),
        ("log.segment.bytes", "2000", 2),
        ("log.segment.bytes", "3000", 3),
        ("log.segment.bytes", "1000", 4),
        ("log.segment.bytes", "1073741824", 5),
    ]
    inherited = named(helper.topic_entries({}), "segment.bytes")
    assert (inherited.value, inherited.source) == ("2000", 2)


def test_a_value_of_a_topic_that_cannot_be_is_not_told() -> None:
    entries = ConfigHelper(DynamicBrokerConfig(config(1))).topic_entries({"segment.bytes": "9"})
    entry = named(entries, "segment.bytes")
    assert (entry.value, entry.source) == ("1073741824", 5)


def test_all_settings_of_a_broker_are_told() -> None:
    entries = ConfigHelper(DynamicBrokerConfig(config(1))).broker_entries()
    assert len(entries) == len(KafkaConfig.__struct_fields__)
    described = {
        entry.name: (entry.value, entry.type, entry.source, entry.read_only) for entry in entries
    }
    assert described["broker.id"] == ("1", ConfigType.INT, 4, True)
    assert described["log.dirs"] == ("unused", ConfigType.LIST, 4, True)
    assert described["broker.rack"] == (None, ConfigType.STRING, 5, True)
    assert described["delete.topic.enable"] == ("true", ConfigType.BOOLEAN, 5, True)
    assert described["log.flush.interval.messages"] == (str(2**63 - 1), ConfigType.LONG, 5, False)


def test_of_all_brokers_only_what_was_set_is_told() -> None:
    dynamic = DynamicBrokerConfig(config(1, **{MIN_ISR: 2}))
    dynamic.update_default_config({MIN_ISR: "3"})
    (entry,) = ConfigHelper(dynamic).default_broker_entries()
    assert (entry.name, synonyms(entry)) == (MIN_ISR, [(MIN_ISR, "3", 3)])

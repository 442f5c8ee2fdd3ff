"""The recorded properties of background work are those of the scenario, or Kafka's."""

from __future__ import annotations

import msgspec

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.running.background_settings import background_settings
from nemesis.scenarios import scenario as scenarios

SCENARIO = scenarios.load("idempotent-producers")


def test_what_the_scenario_sets() -> None:
    assert background_settings(SCENARIO) == {
        "auto.leader.rebalance.enable": 1,
        "leader.imbalance.check.interval.seconds": 3,
        "leader.imbalance.per.broker.percentage": 10,
        "log.cleaner.backoff.ms": 15_000,
        "log.cleaner.delete.retention.ms": 86_400_000,
        "log.cleaner.enable": 1,
        "log.cleaner.min.cleanable.ratio": 50,
        "log.cleaner.min.compaction.lag.ms": 0,
        "log.flush.offset.checkpoint.interval.ms": 60_000,
        "log.flush.start.offset.checkpoint.interval.ms": 60_000,
        "log.retention.bytes": -1,
        "log.retention.check.interval.ms": 300_000,
        "log.retention.ms": 604_800_000,
        "log.segment.bytes": 4096,
        "replica.alter.log.dirs.io.max.bytes.per.second": 2**63 - 1,
        "replica.high.watermark.checkpoint.interval.ms": 1_000,
        "unclean.leader.election.enable": 0,
    }


def test_words_are_truth_values() -> None:
    disabled = msgspec.structs.replace(SCENARIO, broker={"auto.leader.rebalance.enable": "false"})
    assert background_settings(disabled)["auto.leader.rebalance.enable"] == 0


def test_retention_is_not_stated_where_logs_are_compacted() -> None:
    compacted = msgspec.structs.replace(SCENARIO, broker={"log.cleanup.policy": "compact"})
    assert "log.retention.bytes" not in background_settings(compacted)


def test_what_else_rolls_segments_is_recorded_where_it_is_configured() -> None:
    assert "log.roll.ms" not in background_settings(SCENARIO)
    rolling = {"log.roll.ms": 300, "log.index.size.max.bytes": 24}
    settings = background_settings(msgspec.structs.replace(SCENARIO, broker=rolling))
    assert settings.items() >= rolling.items()


def test_defaults_are_those_of_brokers() -> None:
    settings = background_settings(msgspec.structs.replace(SCENARIO, broker={}))
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(KafkaConfig)}
    ratio = settings.pop("log.cleaner.min.cleanable.ratio")
    retention_ms = settings.pop("log.retention.ms")
    assert settings == {name: defaults[name] for name in settings}
    assert ratio == 100 * defaults["log.cleaner.min.cleanable.ratio"]
    assert retention_ms == 3_600_000 * defaults["log.retention.hours"]


def test_retention_by_age_may_be_set_in_other_units() -> None:
    minutes = msgspec.structs.replace(SCENARIO, broker={"log.retention.minutes": 2})
    assert background_settings(minutes)["log.retention.ms"] == 120_000
    both = msgspec.structs.replace(
        SCENARIO, broker={"log.retention.ms": -1, "log.retention.hours": 1}
    )
    assert background_settings(both)["log.retention.ms"] == -1

"""The recorded time-outs are those of the scenario on its runtime, or Kafka's."""

from __future__ import annotations

import msgspec

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.running.timeout_settings import timeout_settings
from nemesis.scenarios import scenario as scenarios

SCENARIO = scenarios.load("partition-controller")


def test_what_the_scenario_sets() -> None:
    assert timeout_settings(SCENARIO) == {
        "tickTime": 500,
        "zookeeper.session.timeout.ms": 2000,
        "replica.lag.time.max.ms": 1500,
        "replica.socket.timeout.ms": 2000,
        "replica.fetch.backoff.ms": 100,
        "replica.fetch.wait.max.ms": 100,
        "controller.socket.timeout.ms": 2000,
        "controller.retry.backoff.ms": 100,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10_000,
    }


def test_defaults_are_those_of_brokers() -> None:
    settings = timeout_settings(msgspec.structs.replace(SCENARIO, broker={}))
    del settings["tickTime"]
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(KafkaConfig)}
    assert settings == {name: defaults[name] for name in settings}


def test_time_outs_of_groups_are_those_of_the_workload_that_has_groups() -> None:
    groups = scenarios.load("groups")
    of_groups = {
        "session.timeout.ms": 3000,
        "max.poll.interval.ms": 4000,
        "group.initial.rebalance.delay.ms": 300,
        "offsets.commit.timeout.ms": 2000,
    }
    assert timeout_settings(groups).items() >= of_groups.items()
    unset = timeout_settings(msgspec.structs.replace(groups, broker={}))
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(KafkaConfig)}
    for name in ("group.initial.rebalance.delay.ms", "offsets.commit.timeout.ms"):
        assert unset[name] == defaults[name]

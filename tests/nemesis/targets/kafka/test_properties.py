"""A scenario's properties in the words of a release of Kafka."""

from __future__ import annotations

import pytest

from nemesis.scenarios import scenario
from nemesis.support.errors import UsageError
from nemesis.targets.kafka.properties import LEFT_OUT, translated
from nemesis.targets.kafka.releases import find_release

NEWEST, OLDEST, KRAFT = (find_release(version) for version in ("3.9.1", "3.3.2", "4.1.1"))


def test_values_become_texts() -> None:
    properties = {
        "unclean.leader.election.enable": False,
        "replica.lag.time.max.ms": 1500,
        "log.cleanup.policy": ["compact", "delete"],
    }
    kafka = translated(properties, NEWEST)
    assert kafka["unclean.leader.election.enable"] == "false"
    assert kafka["replica.lag.time.max.ms"] == "1500"
    assert kafka["log.cleanup.policy"] == "compact,delete"


def test_the_controllers_time_out_is_kafkas_request_time_out() -> None:
    kafka = translated({"controller.socket.timeout.ms": 2000}, NEWEST)
    assert kafka["request.timeout.ms"] == kafka["controller.socket.timeout.ms"] == "2000"


def test_a_request_time_out_is_that_of_the_controller_or_refused() -> None:
    same = {"controller.socket.timeout.ms": 2000, "request.timeout.ms": "2000"}
    assert translated(same, NEWEST)["request.timeout.ms"] == "2000"
    with pytest.raises(UsageError, match=r"request.timeout.ms is 5000: expected 2000 as in contr"):
        translated({**same, "request.timeout.ms": 5000}, NEWEST)
    with pytest.raises(UsageError, match=r"request.timeout.ms is 5000: expected 30000"):
        translated({"request.timeout.ms": 5000}, NEWEST)


def test_small_segments_are_refused_since_kafka_4() -> None:
    name = "log.segment.bytes"
    assert translated({name: 2048}, NEWEST)[name] == "2048"
    assert translated({name: 1_048_576}, KRAFT)[name] == "1048576"
    for value in (1_048_575, "2048"):
        with pytest.raises(
            UsageError, match=r"expected at least 1048576 .*--kafka-version 3\.9\.1"
        ):
            translated({name: value}, KRAFT)


def test_null_is_the_default() -> None:
    asked = dict.fromkeys(("min.insync.replicas", "control.plane.listener.name", "compression"))
    assert translated(asked, NEWEST) == translated({}, NEWEST)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("zookeeper.session.timeout.ms", "abc", "abc: expected a whole number"),
        ("replica.lag.time.max.ms", None, "None: expected a whole number"),
        ("controller.retry.backoff.ms", "-1", "-1: expected a whole number"),
        ("leader.imbalance.check.interval.seconds", 1.5, "1.5: expected a whole number"),
        ("auto.leader.rebalance.enable", "yes", "yes: expected true or false"),
    ],
)
def test_what_the_harness_could_not_read_is_refused(
    name: str, value: object, expected: str
) -> None:
    with pytest.raises(UsageError, match=f"^broker configuration: {name} is {expected}$"):
        translated({name: value}, NEWEST)


def test_what_kafka_does_not_have_is_left_out_and_the_unknown_passes_through() -> None:
    kafka = translated({**dict.fromkeys(LEFT_OUT, 1), "some.new.property": 7}, NEWEST)
    assert not LEFT_OUT.keys() & kafka.keys()
    assert kafka["some.new.property"] == "7"


def test_time_outs_are_those_of_3_9_in_every_release() -> None:
    assert translated({}, OLDEST)["replica.lag.time.max.ms"] == "30000"
    assert translated({}, OLDEST) == translated({}, NEWEST)


def test_internal_topics_are_replicated_as_the_others() -> None:
    kafka = translated({"default.replication.factor": 3, "min.insync.replicas": 2}, NEWEST)
    assert kafka["offsets.topic.replication.factor"] == "3"
    assert kafka["transaction.state.log.min.isr"] == "2"
    assert translated({}, NEWEST)["transaction.state.log.replication.factor"] == "1"


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"inter.broker.protocol.version": "3.9"}, "Kafka 3.3 has none newer than its own"),
        ({"process.roles": "broker"}, "process.roles follows from the release"),
        ({"inter.broker.protocol.version": "new"}, "expected a version such as 3.9"),
        ({"inter.broker.protocol.version": "2.7"}, "expected 2.8 or newer, because topics have no"),
    ],
)
def test_what_a_release_cannot_have_is_refused(
    properties: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        translated(properties, OLDEST)


def test_a_kraft_node_has_no_property_of_zookeeper_and_a_session_of_the_same_length() -> None:
    asked = {"zookeeper.session.timeout.ms": 2000, "controller.socket.timeout.ms": 2000}
    kafka = translated(asked, KRAFT)
    assert not [name for name in kafka if "zookeeper" in name]
    assert kafka["broker.session.timeout.ms"] == "2000"
    assert kafka["broker.heartbeat.interval.ms"] == "500"
    assert kafka["request.timeout.ms"] == "2000"
    chosen = translated({**asked, "broker.session.timeout.ms": 3000}, KRAFT)
    assert chosen["broker.session.timeout.ms"] == "3000"


@pytest.mark.parametrize("name", ["control.plane.listener.name", "inter.broker.protocol.version"])
def test_what_kafka_4_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is '3.9': Kafka 4.1 has no such property"):
        translated({name: "3.9"}, KRAFT)


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_of_ours_can_be_translated(name: str) -> None:
    asked = dict(scenario.load(name).broker_properties)
    asked.pop("inter.broker.protocol.version", None)
    assert asked.keys() - LEFT_OUT.keys() <= translated(asked, NEWEST).keys()

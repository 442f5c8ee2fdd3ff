"""Znodes as Kafka writes them, and what is not one."""

from __future__ import annotations

import json
from random import Random
from uuid import UUID

import pytest

from nemesis.reference.model import Broker, LeaderAndIsr, LeaderRecoveryState, TopicPartition
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import ZnodeFormatError
from nemesis.reference.zk.zk_data import (
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicAssignment,
)

TP = TopicPartition("t", 3)


def test_controller_is_version_2() -> None:
    data = zk_data.encode_controller(5, 1234)
    assert json.loads(data) == {
        "version": 2,
        "brokerid": 5,
        "timestamp": "1234",
        "kraftControllerEpoch": -1,
    }
    assert zk_data.decode_controller(data) == 5
    assert zk_data.decode_controller(b'{"version":1,"brokerid":2,"timestamp":"0"}') == 2


def test_state_keeps_everything_but_the_version() -> None:
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 4, (1, 2), partition_epoch=9), 7)
    data = zk_data.encode_state(state)
    assert json.loads(data) == {
        "controller_epoch": 7,
        "leader": 1,
        "version": 1,
        "leader_epoch": 4,
        "isr": [1, 2],
    }
    assert zk_data.decode_state(TP, data, 9) == state


def test_recovery_state_is_written_only_while_recovering() -> None:
    recovering = LeaderAndIsr(1, 4, (1,), LeaderRecoveryState.RECOVERING, 2)
    state = LeaderIsrAndControllerEpoch(recovering, 7)
    data = zk_data.encode_state(state)
    assert json.loads(data)["leader_recovery_state"] == 1
    assert zk_data.decode_state(TP, data, 2) == state


def test_topic_is_version_3_with_kafkas_spelling_of_the_id() -> None:
    topic = TopicAssignment(
        "t",
        UUID("a5a1a2b3-c4d5-4e6f-8a9b-0c1d2e3f4a5b"),
        {0: ReplicaAssignment((1, 2, 3), (3,), (1,)), 10: ReplicaAssignment((2,))},
    )
    data = zk_data.encode_topic(topic)
    assert json.loads(data) == {
        "version": 3,
        "topic_id": "paGis8TVTm-Kmwwd" + "Lj9KWw",
        "partitions": {"0": [1, 2, 3], "10": [2]},
        "adding_replicas": {"0": [3]},
        "removing_replicas": {"0": [1]},
    }
    assert zk_data.decode_topic("t", data) == topic


def test_a_topic_of_version_1_has_no_id() -> None:
    topic = zk_data.decode_topic("t", b'{"version":1,"partitions":{"0":[1]}}')
    assert topic == TopicAssignment("t", None, {0: ReplicaAssignment((1,))})


def test_broker_is_version_5_and_any_plaintext_endpoint_is_read() -> None:
    broker = Broker.at(1, "host", 9092, "rack-a")
    data = zk_data.encode_broker(broker, 7)
    assert json.loads(data)["version"] == 5
    assert zk_data.decode_broker(1, data) == broker
    kafkas = b'{"version":4,"endpoints":["SSL://a:1","PLAINTEXT://b:2"],"host":"a","port":1}'
    assert zk_data.decode_broker(2, kafkas) == Broker.at(2, "b", 2)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"leader":"x"}', b"\xff"])
def test_a_foreign_znode_names_its_path(data: bytes) -> None:
    for decode, path in (
        (lambda: zk_data.decode_state(TP, data, 0), "/brokers/topics/t/partitions/3/state"),
        (lambda: zk_data.decode_topic("t", data), "/brokers/topics/t"),
        (lambda: zk_data.decode_broker(1, data), "/brokers/ids/1"),
        (lambda: zk_data.decode_controller(data), "/controller"),
    ):
        with pytest.raises(ZnodeFormatError, match=path):
            decode()


TOO_LARGE = 2**31


@pytest.mark.parametrize(
    "data",
    [
        {"endpoints": 5},
        {"endpoints": ["PLAINTEXT://h:65536"]},
        {"endpoints": ["PLAINTEXT://h:\u00b2"]},
        {"endpoints": ["PLAINTEXT://h:1"], "rack": 5},
    ],
)
def test_a_broker_that_nobody_could_be_told_of_is_none(data: object) -> None:
    with pytest.raises(ZnodeFormatError, match="/brokers/ids/1"):
        zk_data.decode_broker(1, json.dumps(data).encode())


@pytest.mark.parametrize(
    "data",
    [
        {"partitions": {str(TOO_LARGE): [1]}},
        {"partitions": {"0": [TOO_LARGE]}},
        {"partitions": {"0": ["1"]}},
        {"partitions": {"0": []}},
        {"partitions": {"0": [2, 1, 2]}},
        {"partitions": {"-1": [1]}},
        {"partitions": {"0": [1, -1]}},
        {"partitions": {"0": [1]}, "adding_replicas": {"0": [TOO_LARGE]}},
    ],
)
def test_an_assignment_that_no_partition_can_have_is_none(data: object) -> None:
    with pytest.raises(ZnodeFormatError, match=r"/brokers/topics/t.*partitions"):
        zk_data.decode_topic("t", json.dumps(data).encode())


@pytest.mark.parametrize("key", ["leader", "leader_epoch", "controller_epoch"])
@pytest.mark.parametrize("number", [TOO_LARGE, "1", True, 1.5])
def test_a_state_has_the_numbers_of_the_protocol(key: str, number: object) -> None:
    state = {"leader": 1, "leader_epoch": 0, "isr": [1], "controller_epoch": 1}
    with pytest.raises(ZnodeFormatError, match="/brokers/topics/t/partitions/3/state"):
        zk_data.decode_state(TP, json.dumps({**state, key: number}).encode(), 0)
    with pytest.raises(ZnodeFormatError, match="is not a number of 32 bits"):
        zk_data.decode_state(TP, json.dumps({**state, "isr": [number]}).encode(), 0)


def test_a_reassignment_to_brokers_that_there_cannot_be_is_none() -> None:
    asked = {"partitions": [{"topic": "t", "partition": 0, "replicas": [TOO_LARGE]}]}
    with pytest.raises(ZnodeFormatError, match="/admin/reassign_partitions"):
        zk_data.decode_partition_reassignment(json.dumps(asked).encode())


def test_topic_ids_read_back_and_never_start_with_a_dash() -> None:
    rng = Random(1)
    for _ in range(200):
        topic_id = zk_data.random_topic_id(rng)
        text = zk_data.topic_id_to_string(topic_id)
        assert len(text) == 22
        assert not text.startswith("-")
        assert zk_data.topic_id_from_string(text) == topic_id


def test_a_reassignment_leads_to_the_replicas_that_are_not_removed() -> None:
    assert ReplicaAssignment((1, 2, 3), (3,), (1,)).target_replicas == (2, 3)

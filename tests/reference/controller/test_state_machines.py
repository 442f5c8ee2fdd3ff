"""Legal and illegal transitions; the tables are those of kafka.controller, and an illegal one changes nothing."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from nemesis.reference.controller import partition_state_machine, replica_state_machine
from nemesis.reference.controller.controller_context import (
    PartitionState,
    ReplicaState,
)
from nemesis.reference.controller.errors import IllegalStateError
from nemesis.reference.model import LeaderAndIsr
from nemesis.reference.zk.zk_data import (
    LeaderIsrAndControllerEpoch,
)
from tests.reference.controller.state_machines import REPLICA, TP, Machines

PARTITION_TRANSITIONS = {
    ("New", "Online"),
    ("New", "Offline"),
    ("Online", "Online"),
    ("Online", "Offline"),
    ("Offline", "Online"),
    ("Offline", "Offline"),
    ("Offline", "NonExistent"),
    ("NonExistent", "New"),
}
REPLICA_TRANSITIONS = {
    ("NonExistent", "New"),
    ("New", "Online"),
    ("Online", "Online"),
    ("Offline", "Online"),
    ("DeletionIneligible", "Online"),
    ("New", "Offline"),
    ("Online", "Offline"),
    ("Offline", "Offline"),
    ("DeletionIneligible", "Offline"),
    ("Offline", "DeletionStarted"),
    ("DeletionStarted", "DeletionSuccessful"),
    ("Offline", "DeletionIneligible"),
    ("DeletionStarted", "DeletionIneligible"),
    ("DeletionSuccessful", "NonExistent"),
}


def test_the_tables_are_kafkas() -> None:
    for table, expected in (
        (partition_state_machine.VALID_PREVIOUS_STATES, PARTITION_TRANSITIONS),
        (replica_state_machine.VALID_PREVIOUS_STATES, REPLICA_TRANSITIONS),
    ):
        pairs = {(s.value, target.value) for target, states in table.items() for s in states}
        assert pairs == expected


# The legal ways to Online are elections: test_kafka_controller has them on a real ZooKeeper.
IN_MEMORY = [
    (state, target)
    for state, target in product(PartitionState, PartitionState)
    if target is not PartitionState.ONLINE or state is PartitionState.NON_EXISTENT
]


@pytest.mark.parametrize(("state", "target"), IN_MEMORY)
def test_partition_transitions(state: PartitionState, target: PartitionState) -> None:
    legal = (state.value, target.value) in PARTITION_TRANSITIONS
    machines = Machines()
    machines.context.put_partition_state(TP, state)
    asyncio.run(machines.partitions.handle_state_changes([TP], target))
    assert machines.context.partition_state(TP) is (target if legal else state)
    event = machines.transition()
    assert (event["from_state"], event["to_state"]) == (state.value, target.value)
    assert event.get("error") == (None if legal else "ILLEGAL_TRANSITION")
    assert (event["topic"], event["partition"], event["controller_epoch"]) == ("t", 0, 3)


@pytest.mark.parametrize(("state", "target"), list(product(ReplicaState, ReplicaState)))
def test_replica_transitions(state: ReplicaState, target: ReplicaState) -> None:
    legal = (state.value, target.value) in REPLICA_TRANSITIONS
    machines = Machines()
    machines.context.put_replica_state(REPLICA, state)
    asyncio.run(machines.replicas.handle_state_changes([REPLICA], target))
    assert machines.context.replica_state(REPLICA) is (target if legal else state)
    event = machines.transition()
    assert (event["from_state"], event["to_state"]) == (state.value, target.value)
    assert event.get("error") == (None if legal else "ILLEGAL_TRANSITION")
    assert event["replica"] == 1


def test_an_online_replica_is_told_its_state_and_everybody_the_metadata() -> None:
    machines = Machines()
    machines.context.leadership[TP] = LeaderIsrAndControllerEpoch(LeaderAndIsr(2, 4, (1, 2)), 2)
    machines.context.put_replica_state(REPLICA, ReplicaState.OFFLINE)
    asyncio.run(machines.replicas.handle_state_changes([REPLICA], ReplicaState.ONLINE))
    sent = [
        (broker, item.api, item.request.broker_epoch) for broker, item in machines.channels.sent
    ]
    assert sent == [
        (1, "LeaderAndIsr", 101),
        (1, "UpdateMetadata", 101),
        (2, "UpdateMetadata", 102),
    ]
    request = machines.channels.sent[0][1].request
    assert (request.controller_id, request.controller_epoch) == (1, 3)
    (state,) = request.topic_states[0].partition_states
    assert (state.leader, state.leader_epoch, state.controller_epoch) == (2, 4, 2)


def test_a_leader_never_becomes_a_new_replica() -> None:
    machines = Machines()
    machines.context.leadership[TP] = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 0, (1,)), 2)
    asyncio.run(machines.replicas.handle_state_changes([REPLICA], ReplicaState.NEW))
    assert machines.context.replica_state(REPLICA) is ReplicaState.NON_EXISTENT
    assert machines.channels.sent == []


def test_a_batch_that_was_not_sent_is_an_error() -> None:
    machines = Machines()
    machines.batch.add_stop_replica_request_for_brokers([1], TP, delete_partition=False)
    with pytest.raises(IllegalStateError, match="StopReplica"):
        machines.batch.new_batch()
    machines.batch.send_requests_to_brokers(3)
    machines.batch.new_batch()


def test_a_batch_that_is_cleared_is_not_sent() -> None:
    machines = Machines()
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 0, (1, 2)), 3)
    assignment = machines.context.assignment(TP)
    machines.batch.add_leader_and_isr_request_for_brokers([1], TP, state, assignment, is_new=True)
    machines.batch.add_stop_replica_request_for_brokers([2], TP, delete_partition=False)
    machines.batch.clear()
    machines.batch.new_batch()
    machines.batch.send_requests_to_brokers(3)
    assert machines.channels.sent == []


def test_a_batch_is_sent_in_kafkas_order_and_only_to_live_brokers() -> None:
    machines = Machines()
    machines.context.leadership[TP] = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 4, (1,)), 3)
    batch = machines.batch
    batch.add_stop_replica_request_for_brokers([2, 9], TP, delete_partition=False)
    batch.add_leader_and_isr_request_for_brokers(
        [2, 9],
        TP,
        machines.context.leadership[TP],
        machines.context.assignment(TP),
        is_new=False,
    )
    batch.send_requests_to_brokers(3)
    assert [(broker, item.api) for broker, item in machines.channels.sent] == [
        (2, "LeaderAndIsr"),
        (1, "UpdateMetadata"),
        (2, "UpdateMetadata"),
        (2, "StopReplica"),
    ]
    stop = machines.channels.sent[-1][1].request.topic_states[0].partition_states[0]
    assert (stop.leader_epoch, stop.delete_partition) == (4, False)


def test_a_replica_that_is_new_stays_new_within_a_batch() -> None:
    machines = Machines()
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 0, (1, 2)), 3)
    for is_new in (True, False):
        machines.batch.add_leader_and_isr_request_for_brokers(
            [2], TP, state, machines.context.assignment(TP), is_new=is_new
        )
    machines.batch.send_requests_to_brokers(3)
    (partition_state,) = machines.channels.sent[0][1].request.topic_states[0].partition_states
    assert partition_state.is_new

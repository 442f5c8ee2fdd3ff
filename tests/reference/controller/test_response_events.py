"""What the brokers' answers make the controller do."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.leader_and_isr.v7.response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kio.static.primitive import i32

from nemesis.reference.controller import control_requests
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import (
    NewerControllerNoticed,
    ReplicasFailed,
    TopicDeletionStopReplicaResponseReceived,
)
from nemesis.reference.controller.response_events import event_of
from nemesis.reference.model import StopReplicaPartitionState, TopicPartition
from nemesis.reference.zk.zk_data import ReplicaAssignment, TopicAssignment
from tests.reference.controller.cluster import (
    TOPIC_ID,
    create_topic,
    nodes,
    ok,
    run,
    stopped,
    until,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def knowing_t() -> ControllerContext:
    context = ControllerContext()
    context.add_topic(
        TopicAssignment("t", TOPIC_ID, {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((1, 2))})
    )
    return context


def stop(*deleted: TopicPartition) -> Any:
    states = {tp: StopReplicaPartitionState(tp, -2, tp in deleted) for tp in (T0, T1)}
    return control_requests.stop_replica_request(1, 7, 102, states)


def leader_and_isr() -> Any:
    return control_requests.leader_and_isr_request(1, 7, 102, {}, [])


def opened(*errors: ErrorCode) -> LeaderAndIsrResponse:
    """The answer to a LeaderAndIsr for partitions 0, 1, … of topic t."""
    partitions = tuple(
        LeaderAndIsrPartitionError(partition_index=i32(number), error_code=error)
        for number, error in enumerate(errors)
    )
    topic = LeaderAndIsrTopicError(topic_id=TOPIC_ID, partition_errors=partitions)
    return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=(topic,))


def test_a_log_that_failed_fails_the_replica() -> None:
    answer = opened(ErrorCode.none, ErrorCode.kafka_storage_error)
    event = event_of(knowing_t(), "LeaderAndIsr", 2, leader_and_isr(), answer)
    assert event == ReplicasFailed(7, 102, 2, (T1,))


def test_other_errors_of_a_partition_change_nothing() -> None:
    answer = opened(ErrorCode.stale_controller_epoch, ErrorCode.unknown_topic_or_partition)
    assert event_of(knowing_t(), "LeaderAndIsr", 2, leader_and_isr(), answer) is None


def test_a_topic_that_is_gone_has_no_replica_to_fail() -> None:
    answer = opened(ErrorCode.kafka_storage_error)
    assert event_of(ControllerContext(), "LeaderAndIsr", 2, leader_and_isr(), answer) is None


def test_a_newer_controller_is_noticed_in_any_answer() -> None:
    for api, request in (("LeaderAndIsr", leader_and_isr()), ("StopReplica", stop(T0))):
        answer = ok(request, ErrorCode.stale_controller_epoch)
        event = event_of(knowing_t(), api, 2, request, answer)
        reason = f"broker 2 answered {api} with STALE_CONTROLLER_EPOCH"
        assert event == NewerControllerNoticed(7, reason)


def test_only_what_was_deleted_with_its_topic_drives_the_deletion() -> None:
    context, request = knowing_t(), stop(T0)
    answer = stopped(request, partition_error=ErrorCode.kafka_storage_error)
    assert event_of(context, "StopReplica", 2, request, answer) is None
    context.topics_with_deletion_started["t"] = None
    errors = {T0: ErrorCode.kafka_storage_error}
    expected = TopicDeletionStopReplicaResponseReceived(7, 102, 2, errors)
    assert event_of(context, "StopReplica", 2, request, answer) == expected


def test_a_refused_request_deleted_nothing() -> None:
    context, request = knowing_t(), stop(T0, T1)
    context.topics_with_deletion_started["t"] = None
    answer = ok(request, ErrorCode.stale_broker_epoch)
    errors = dict.fromkeys((T0, T1), ErrorCode.stale_broker_epoch)
    expected = TopicDeletionStopReplicaResponseReceived(7, 102, 2, errors)
    assert event_of(context, "StopReplica", 2, request, answer) == expected


def test_a_leader_whose_log_failed_is_replaced(zookeeper_address: str) -> None:
    def failing(port: int, request: Any) -> Any:
        is_failing = port == 9002 and type(request).__name__ == "LeaderAndIsrRequest"
        return opened(ErrorCode.kafka_storage_error) if is_failing else None

    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, *_):
            first.wire.answer = failing
            await create_topic(first, "t", (2, 3, 1))
            await until(lambda: any(leader == 3 for _, leader, _, _ in first.elected("t", 0)))
            state = (await first.state("t", 0)).leader_and_isr
            assert (state.leader, state.isr) == (3, (3, 1))
            assert not first.controller.context.is_replica_online(2, T0)
            assert first.controller.context.live_broker_ids == [1, 2, 3]

    run(test())

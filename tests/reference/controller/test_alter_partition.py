"""AlterPartition's checks, each by the request that fails it and no other."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import (
    AlterPartitionItem,
    Change,
    Unchanged,
    decide,
)
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.model import Broker, LeaderAndIsr, LeaderRecoveryState, TopicPartition
from nemesis.reference.zk.zk_data import (
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicAssignment,
)

TOPIC_ID = UUID(int=1)
RECOVERED, RECOVERING = LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING
CURRENT = LeaderAndIsr(leader=1, leader_epoch=5, isr=(1, 2), partition_epoch=8)
GOOD = AlterPartitionItem(None, TOPIC_ID, 0, 5, ((1, 101), (2, -1), (3, 103)), RECOVERED, 8)


def context(current: LeaderAndIsr = CURRENT) -> ControllerContext:
    known = ControllerContext()
    known.set_live_brokers({Broker.at(b, "h", b): 100 + b for b in (1, 2, 3, 5)})
    known.add_topic(TopicAssignment("t", TOPIC_ID, {0: ReplicaAssignment((1, 2, 3, 4))}))
    known.leadership[TopicPartition("t", 0)] = LeaderIsrAndControllerEpoch(current, 1)
    return known


def test_a_good_proposal_changes_the_isr_and_no_leader_epoch() -> None:
    assert decide(context(), 1, GOOD) == Change(replace(CURRENT, isr=(1, 2, 3)))


def test_the_present_state_is_no_change_even_with_an_older_partition_epoch() -> None:
    repeated = replace(GOOD, new_isr=((2, -1), (1, -1)), partition_epoch=7)
    assert decide(context(), 1, repeated) == Unchanged(CURRENT)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"topic_id": UUID(int=9)}, ErrorCode.unknown_topic_id),
        ({"partition": 1}, ErrorCode.unknown_topic_or_partition),
        ({"topic_id": None, "topic": "other"}, ErrorCode.unknown_topic_or_partition),
        ({"partition_epoch": 9}, ErrorCode.not_controller),
        ({"leader_epoch": 6}, ErrorCode.not_controller),
        ({"leader_epoch": 4}, ErrorCode.fenced_leader_epoch),
        ({"partition_epoch": 7}, ErrorCode.invalid_update_version),
        ({"leader_recovery_state": RECOVERING}, ErrorCode.invalid_request),
        (
            {"leader_recovery_state": RECOVERING, "new_isr": ((1, -1),)},
            ErrorCode.invalid_request,
        ),
        ({"new_isr": ()}, ErrorCode.invalid_request),
        ({"new_isr": ((2, -1), (3, -1))}, ErrorCode.invalid_request),
        ({"new_isr": ((1, -1), (3, -1), (3, -1))}, ErrorCode.invalid_request),
        ({"new_isr": ((1, -1), (5, -1))}, ErrorCode.invalid_request),
        ({"new_isr": ((1, -1), (4, -1))}, ErrorCode.ineligible_replica),
        ({"new_isr": ((1, -1), (3, 102))}, ErrorCode.ineligible_replica),
        (
            {"topic_id": None, "topic": "t", "new_isr": ((1, -1), (4, -1))},
            ErrorCode.operation_not_attempted,
        ),
    ],
)
def test_each_check_has_its_error(change: dict[str, object], error: ErrorCode) -> None:
    assert decide(context(), 1, replace(GOOD, **change)) is error  # type: ignore[arg-type]


def test_only_the_leader_may_propose() -> None:
    assert decide(context(), 2, GOOD) is ErrorCode.invalid_request


def test_a_broker_that_shuts_down_is_not_eligible() -> None:
    known = context()
    known.shutting_down_broker_ids.add(3)
    assert decide(known, 1, GOOD) is ErrorCode.ineligible_replica


def test_a_recovering_leader_recovers_alone() -> None:
    current = replace(CURRENT, isr=(1,), leader_recovery_state=RECOVERING)
    recovered = replace(GOOD, new_isr=((1, -1),))
    assert decide(context(current), 1, recovered) == Change(
        replace(current, leader_recovery_state=RECOVERED)
    )


def test_newer_epochs_are_noticed_before_anything_else() -> None:
    newer = replace(GOOD, partition_epoch=9, leader_epoch=4, new_isr=())
    assert decide(context(), 1, newer) is ErrorCode.not_controller

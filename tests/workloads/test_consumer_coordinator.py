"""A member of a group, request by request, against the coordinator of a reference broker in this process."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.versions import ApiKey, is_offered
from nemesis.reference.server.apis.group_offsets import GroupOffsetApis
from nemesis.reference.server.apis.groups import GroupApis
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.cluster_metadata import (
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from nemesis.workloads.kafka.consumer_coordinator import NO_MEMBER, ConsumerCoordinator
from nemesis.workloads.kafka.errors import BrokerError
from nemesis.workloads.kafka.group_offset_requests import Committed
from tests.reference.cluster.hosting import TP
from tests.reference.coordinator.group_node import GROUP, GroupNode, on_group_node
from tests.reference.server.answers import answered

BROKER = 1
TIMEOUT_S = 5.0


class Client(KafkaClient):
    """Sends each request through the codec to the broker in this process."""

    def __init__(self, node: GroupNode) -> None:
        super().__init__([], client_id="c", source_host="", rng=Random(1))
        groups = GroupApis(node.coordinator)
        offsets = GroupOffsetApis(node.coordinator, node.node.cache, node.now_ms)
        self._handlers: dict[int, Any] = {
            ApiKey.JOIN_GROUP: lambda request: groups.handle_join_group(request, "c", "h"),
            ApiKey.SYNC_GROUP: groups.handle_sync_group,
            ApiKey.HEARTBEAT: groups.handle_heartbeat,
            ApiKey.LEAVE_GROUP: groups.handle_leave_group,
            ApiKey.OFFSET_COMMIT: offsets.handle_offset_commit,
            ApiKey.OFFSET_FETCH: offsets.handle_offset_fetch,
        }
        self.metadata = ClusterMetadata(
            {BROKER: ("h", 1)},
            topics={
                TP.topic: TopicMetadata(
                    UUID(int=1), {TP.partition: PartitionMetadata(BROKER, 0, (BROKER,), (BROKER,))}
                )
            },
        )

    async def refresh_metadata(self, *, timeout_s: float = 1.0) -> bool:
        return True

    async def request_coordinator(self, node: int, request: Any, timeout_s: float) -> Any:
        frame = encode_request(request, correlation_id=1, client_id="c")
        decoded = decode_request(frame[SIZE_BYTES:], is_offered=is_offered)
        response = await answered(self._handlers[decoded.api_key](decoded.message))
        reply = encode_response(response, correlation_id=1)
        return decode_response(reply[SIZE_BYTES:], type(response))[1]


def member(client: Client) -> ConsumerCoordinator:
    coordinator = ConsumerCoordinator(
        client, GROUP, [TP.topic], session_timeout_ms=9_000, rebalance_timeout_ms=9_000
    )
    coordinator.node = BROKER
    return coordinator


async def assigned(coordinator: ConsumerCoordinator) -> list[tuple[str, int]]:
    """Join with the member id that the first answer gives."""
    with pytest.raises(BrokerError, match="MEMBER_ID_REQUIRED"):
        await coordinator.join(TIMEOUT_S)
    assert await coordinator.join(TIMEOUT_S) == 1
    return await coordinator.sync(TIMEOUT_S)


def test_a_member_joins_commits_and_leaves(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        coordinator = member(Client(node))
        assert await assigned(coordinator) == [(TP.topic, TP.partition)]
        assert (coordinator.generation, coordinator.is_assigned) == (1, True)
        await coordinator.heartbeat(TIMEOUT_S)
        assert await coordinator.fetch([TP], TIMEOUT_S) == {TP: Committed(-1, -1, "")}
        committed = {(TP.topic, TP.partition): Committed(7, 3, "text")}
        assert await coordinator.commit(committed, TIMEOUT_S) == {TP: None}
        assert await coordinator.fetch([TP], TIMEOUT_S) == committed
        await coordinator.leave(TIMEOUT_S)
        assert (coordinator.member_id, coordinator.is_assigned) == (NO_MEMBER, False)

    on_group_node(tmp_path, scenario)


def test_each_partition_of_a_request_has_an_outcome_of_its_own(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        coordinator = member(Client(node))
        await assigned(coordinator)
        absent = ("absent", 0)
        commits = {absent: Committed(5, 3, "no"), TP: Committed(7, 3, "text")}
        outcomes = await coordinator.commit(commits, TIMEOUT_S)
        assert outcomes.keys() == commits.keys()
        assert outcomes[TP] is None
        assert (failure := outcomes[absent]) is not None
        assert failure.name == "UNKNOWN_TOPIC_OR_PARTITION"
        assert coordinator.is_assigned, "the error is not about the membership"
        fetched = await coordinator.fetch([TP, absent], TIMEOUT_S)
        assert fetched == {TP: Committed(7, 3, "text"), absent: Committed(-1, -1, "")}

    on_group_node(tmp_path, scenario)


def test_a_member_that_is_unknown_loses_its_membership_and_a_former_broker_its_place(
    tmp_path: Path,
) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        coordinator = member(Client(node))
        await assigned(coordinator)
        node.give_role(2, 1)
        with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
            await coordinator.heartbeat(TIMEOUT_S)
        assert coordinator.node is None
        assert coordinator.is_assigned
        coordinator.node = BROKER
        await node.lead(2)
        coordinator.member_id = "another"
        failure = (await coordinator.commit({TP: Committed(7, 3, "")}, TIMEOUT_S))[TP]
        assert failure is not None
        assert failure.definite
        assert failure.name == ErrorCode.unknown_member_id.name.upper()
        assert (coordinator.member_id, coordinator.is_assigned) == (NO_MEMBER, False)

    on_group_node(tmp_path, scenario)

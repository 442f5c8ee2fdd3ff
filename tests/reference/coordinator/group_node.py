"""A broker with a group coordinator: real logs and replicas, and the test as its controller and its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_coordinator import GroupCoordinator
from nemesis.reference.coordinator.group.group_joins import JoinGroup
from nemesis.reference.coordinator.group.group_loading import LoadedRecords
from nemesis.reference.coordinator.group.group_metadata import GroupMetadata
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.group.group_results import JoinGroupResult, SyncGroupResult
from nemesis.reference.coordinator.group.group_syncs import SyncGroup
from nemesis.reference.coordinator.group.offset_commits import OffsetCommit
from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.ports import WallClock
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import ApiKey
from nemesis.reference.server.apis.transactions import TransactionApis
from nemesis.reference.server.coordinator_replicas import CoordinatorReplicas
from nemesis.reference.server.coordinator_roles import CoordinatorRoles
from tests.reference.cluster.hosting import TP, lisr
from tests.reference.log.batches import NOW_MS
from tests.reference.server.answers import answered
from tests.reference.server.one_broker import Node
from tests.reference.server.verification import PlayedCoordinators, verifications
from tests.reference.virtual_time import run

OFFSETS_ID = UUID(int=50)
PARTITIONS = 4
GROUP = "g"
CONSUMER = "consumer"
RANGE = (("range", b"r"),)
TRANSACTIONAL_ID = "x"
PRODUCER_ID = 7
NUMBER = partition_for(GROUP, PARTITIONS)
"""The offsets partition of the group."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1,
    "offsets.topic.num.partitions": PARTITIONS,
    "offsets.commit.timeout.ms": 2000,
    "transaction.partition.verification.enable": False,
}


def offsets_partition(number: int = NUMBER) -> TopicPartition:
    return TopicPartition(GROUP_METADATA_TOPIC_NAME, number)


class GroupNode:
    """Broker 1, whose peers are silent."""

    def __init__(self, directory: Path, properties: Mapping[str, Any]) -> None:
        self.node = Node(directory, **{**SETTINGS, **properties})
        self.coordinators = PlayedCoordinators()
        """Those of transactions, asked if the properties let the broker verify them."""
        verifies = self.node.config.transaction_partition_verification_enable
        loop = asyncio.get_running_loop()
        self.now_ms: WallClock = lambda: NOW_MS + round(loop.time() * 1000)
        self.loading_may_go_on = asyncio.Event()
        self.loading_may_go_on.set()
        self.replicas = CoordinatorReplicas(
            self.node.manager.appends,
            partition_of=self.node.manager.hosted.partition,
            on_storage_error=self.node.manager.storage_failures.handle,
            verifications=verifications(
                self.node.manager.hosted.partition, self.coordinators if verifies else None
            ),
        )
        self.groups = GroupMetadataManager(
            self.node.config,
            logs=self.replicas,
            scheduler=self.node.scheduler,
            wall_clock=self.now_ms,
            retrieve_partition_count=self._partition_count,
        )
        self.coordinator = GroupCoordinator(self.node.config, self.groups, rng=Random(3))
        self.node.manager.add_role_listener(
            CoordinatorRoles(
                {GROUP_METADATA_TOPIC_NAME: self.coordinator}, self.coordinator.remove_offsets_of
            )
        )

    async def _partition_count(self) -> int:
        await self.loading_may_go_on.wait()
        return PARTITIONS

    # As controller

    def give_role(
        self, leader: int, leader_epoch: int, *, isr: tuple[int, ...] = (1,), number: int = NUMBER
    ) -> ErrorCode:
        """Make the broker lead (1) or follow (2 or 3) an offsets partition in the epoch."""
        partition = offsets_partition(number)
        state = lisr(
            leader,
            leader_epoch,
            isr,
            replicas=(1, 2, 3),
            topic_id=OFFSETS_ID,
            topic_partition=partition,
        )
        _, answers = self.node.lisr(state)
        return answers[partition]

    async def lead(
        self, leader_epoch: int = 0, *, isr: tuple[int, ...] = (1,), number: int = NUMBER
    ) -> None:
        """Lead an offsets partition and have its groups loaded."""
        assert self.give_role(1, leader_epoch, isr=isr, number=number) is ErrorCode.none
        while self.groups.is_loading:
            await asyncio.sleep(0.01)

    # As clients

    def join(self, member_id: str = "", **changes: Any) -> asyncio.Future[JoinGroupResult]:
        answer: asyncio.Future[JoinGroupResult] = asyncio.get_running_loop().create_future()
        request = JoinGroup(
            GROUP,
            member_id,
            None,
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=60_000,
            session_timeout_ms=10_000,
            protocol_type=CONSUMER,
            protocols=RANGE,
            requires_known_member_id=False,
            supports_skipping_assignment=True,
        )
        self.coordinator.join_group(replace(request, **changes), answer.set_result)
        return answer

    def sync(
        self,
        joined: JoinGroupResult,
        assignments: Mapping[str, bytes] | None = None,
        **changes: Any,
    ) -> asyncio.Future[SyncGroupResult]:
        answer: asyncio.Future[SyncGroupResult] = asyncio.get_running_loop().create_future()
        request = SyncGroup(
            GROUP, joined.generation_id, joined.member_id, None, None, None, assignments or {}
        )
        self.coordinator.sync_group(replace(request, **changes), answer.set_result)
        return answer

    async def stable(self, count: int = 1, **changes: Any) -> list[JoinGroupResult]:
        """Let this many new members join, and give each its number as assignment; the leader is the first."""
        first = self.join(**changes)
        await asyncio.sleep(0.01)
        others = [self.join(**changes) for _ in range(count - 1)]
        if others:
            others.append(self.join(first.result().member_id, **changes))
        joined = list(await asyncio.gather(*(others or [first])))
        leader = next(item for item in joined if item.leader_id == item.member_id)
        assignments = {
            item.member_id: str(index).encode() for index, item in enumerate(leader.members)
        }
        synced = await asyncio.gather(
            *(self.sync(item, assignments if item is leader else {}) for item in joined)
        )
        assert [result.error for result in synced] == [ErrorCode.none] * len(joined)
        return [leader, *(item for item in joined if item is not leader)]

    def heartbeat(self, joined: JoinGroupResult, instance: str | None = None) -> ErrorCode:
        return self.coordinator.heartbeat(GROUP, joined.generation_id, joined.member_id, instance)

    def commit(
        self,
        offset: int,
        joined: JoinGroupResult | None = None,
        *,
        topic_partition: TopicPartition = TP,
        metadata: str = "",
    ) -> asyncio.Future[ErrorCode]:
        """Commit as a member, or as a client without membership."""
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        member_id, generation_id = (
            ("", -1) if joined is None else (joined.member_id, joined.generation_id)
        )
        committed = OffsetAndMetadata(offset, 0, metadata, self.now_ms())
        self.coordinator.commit_offsets(
            OffsetCommit(GROUP, generation_id, member_id, None, {topic_partition: committed}),
            lambda errors: answer.set_result(errors[topic_partition]),
        )
        return answer

    def commit_in_transaction(
        self,
        offset: int,
        joined: JoinGroupResult | None = None,
        *,
        producer_id: int = PRODUCER_ID,
        epoch: int = 0,
        instance: str | None = None,
        topic_partition: TopicPartition = TP,
        group_id: str = GROUP,
    ) -> asyncio.Future[ErrorCode]:
        """Commit in a transaction: as a member, or as a producer that names none."""
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        member_id, generation_id = (
            ("", -1) if joined is None else (joined.member_id, joined.generation_id)
        )
        committed = OffsetAndMetadata(offset, 0, "", self.now_ms())
        self.coordinator.commit_offsets(
            OffsetCommit(
                group_id,
                generation_id,
                member_id,
                instance,
                {topic_partition: committed},
                TransactionalProducer(TRANSACTIONAL_ID, producer_id, epoch),
            ),
            lambda errors: answer.set_result(errors[topic_partition]),
        )
        return answer

    async def end_transaction(
        self, *, is_commit: bool, producer_id: int = PRODUCER_ID, epoch: int = 0
    ) -> ErrorCode:
        """Write the marker of a transaction into the offsets partition, as a transaction coordinator has it written."""
        manager = self.node.manager
        apis = TransactionApis(manager.appends, manager.hosted, self.coordinator, self.now_ms)
        schema = load_request_schema(ApiKey.WRITE_TXN_MARKERS, 1)
        marker_class = item_class(schema, "markers")
        topic = {"name": GROUP_METADATA_TOPIC_NAME, "partition_indexes": (NUMBER,)}
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": is_commit,
            "coordinator_epoch": 0,
            "topics": build_items(marker_class, "topics", [topic]),
        }
        request = build(schema, markers=build_items(schema, "markers", [marker]))
        response = await answered(apis.handle_write_txn_markers(request))
        code: ErrorCode = response.markers[0].topics[0].partitions[0].error_code
        return code

    def fetch(
        self, topic_partition: TopicPartition = TP, *, require_stable: bool = False
    ) -> tuple[ErrorCode, int]:
        """Return the error, of the request or the partition, and the offset."""
        error, results = self.coordinator.fetch_offsets(
            GROUP, [topic_partition], require_stable=require_stable
        )
        if error is not ErrorCode.none:
            return error, -1
        return results[topic_partition].error, results[topic_partition].offset

    # What there is

    @property
    def group(self) -> GroupMetadata:
        group = self.groups.get_group(GROUP)
        assert group is not None
        return group

    def stored(self) -> dict[str, GroupMetadata]:
        """The groups as the log has them."""
        log = self.node.logs.get_log(offsets_partition())
        assert log is not None
        loaded = LoadedRecords()
        if log.log_end_offset:
            loaded.take_in(log.read(0, 1 << 30, log.log_end_offset, min_one_message=True))
        return loaded.groups(self.now_ms)


def on_group_node(
    directory: Path, scenario: Callable[[GroupNode], Awaitable[None]], **properties: Any
) -> None:
    """Run with a broker that leads nothing; afterwards nothing waits any more."""

    async def main() -> None:
        node = GroupNode(directory, properties)
        await node.node.manager.startup()
        node.node.update_metadata()
        await scenario(node)
        node.coordinator.shutdown()
        await node.node.manager.shutdown()
        assert node.node.waiting == 0
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())

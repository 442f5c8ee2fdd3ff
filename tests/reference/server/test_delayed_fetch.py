"""A fetch that waits knows at any time what a full read would find, though it reads only what has moved.

So every change that a fetch may see must be announced. A random life of a broker does all that changes something, and
compares after each step.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.log.errors import LogError
from nemesis.reference.model import (
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    LeaderAndIsr,
    StopReplicaPartitionState,
    TopicPartition,
)
from nemesis.reference.server.delayed_fetch import DelayedFetch, FetchRequests, is_worth_sending
from tests.reference.cluster.hosting import TOPIC_ID, lisr
from tests.reference.log.batches import batch
from tests.reference.server.answers import answered
from tests.reference.server.one_broker import BROKER_EPOCH, NODES, Node
from tests.reference.virtual_time import run

PARTITIONS = tuple(TopicPartition("t", number) for number in range(4))
CONSUMER, DEBUGGING_CONSUMER, FOLLOWER = -1, -2, 2
SIZE = len(batch())
LAG_S = 0.1
MAX_WAIT_MS = 1000
STEPS = 600


class Broker:
    """Broker 1 and its partitions; each step may let some of the fetches complete."""

    def __init__(self, directory: Path, rng: Random, *, min_bytes: int, max_bytes: int) -> None:
        self.node = Node(directory, replica_lag_time_max_ms=int(LAG_S * 1000))
        self.manager = self.node.manager
        self.rng = rng
        self.min_bytes, self.max_bytes = min_bytes, max_bytes
        self.epoch = 0

        self.futures: list[asyncio.Future[None]] = []
        self.node.update_metadata()
        for topic_partition in PARTITIONS:
            self.lead(topic_partition)

    async def step(self) -> str:
        weights = {
            self.poll: 40,
            self.append: 10,
            self.catch_up: 10,
            self.commit_isr: 4,
            self.expire: 2,
            self.lead: 8,
            self.follow: 4,
            self.replicate: 10,
            self.truncate: 5,
            self.delete: 2,
        }
        (chosen,) = self.rng.choices(list(weights), list(weights.values()))
        await answered(chosen(self.rng.choice(PARTITIONS)))
        return chosen.__name__

    def check(self, step: str) -> None:
        """Who waits has nothing worth sending, and holds what there is."""
        for watchers in self.manager.fetches.purgatory._watchers.values():
            for waiting in watchers:
                operation = waiting._operation
                assert isinstance(operation, DelayedFetch)
                params, requests = operation._params, operation._requests
                results = self.manager.fetches.read_all_again(params, requests)
                assert operation.results() == results, step
                assert not self.is_enough(params, requests), step

    def is_enough(self, params: FetchParams, requests: FetchRequests) -> bool:
        alone = [self.manager.fetches.read_again(params, request) for request in requests.values()]
        return is_worth_sending(alone, params)

    def poll(self, _: TopicPartition) -> None:
        """A fetch of some partitions near their end. Its answer is what a full read finds in that moment."""
        replica_id = self.rng.choice([CONSUMER, DEBUGGING_CONSUMER, FOLLOWER])
        isolation = FetchIsolation.LOG_END if replica_id >= 0 else FetchIsolation.HIGH_WATERMARK
        params = FetchParams(
            replica_id, MAX_WAIT_MS, self.min_bytes, self.max_bytes, isolation, 101
        )
        hosted = list(self.manager.hosted.partitions.values())
        requests = {
            partition.topic_partition: self._request(partition, replica_id)
            for partition in self.rng.sample(hosted, self.rng.randint(0, min(3, len(hosted))))
        }

        def respond(results: Any) -> None:
            if is_returned:  # before, the fetch itself may have moved something
                assert results == self.manager.fetches.read_all_again(params, requests)
                assert loop.time() >= deadline or self.is_enough(params, requests)

        loop = asyncio.get_running_loop()
        deadline = loop.time() + MAX_WAIT_MS / 1000 - 0.001  # clocks round
        is_returned = False
        answer = self.manager.fetches.fetch(params, requests, respond)
        is_returned = True
        if answer is not None:
            self.futures.append(answer)

    def _request(self, partition: Partition, replica_id: int) -> FetchPartitionRequest:
        assert partition.log is not None
        is_follower = replica_id == FOLLOWER
        end = partition.log.log_end_offset if is_follower else partition.log.high_watermark
        return FetchPartitionRequest(
            partition.topic_partition,
            TOPIC_ID,
            partition.leader_epoch if is_follower else -1,
            max(end - self.rng.choice([0, 0, 0, 1]), 0),
            -1,
            0,
            self.rng.choice([SIZE // 2, 3 * SIZE]),
        )

    def append(self, topic_partition: TopicPartition) -> None:
        self.manager.appends.append_records(
            timeout_ms=500, acks=1, entries={topic_partition: batch()}, respond=lambda _: None
        )

    def catch_up(self, topic_partition: TopicPartition) -> None:
        """A follower fetches at the end of the log, in one life or another."""
        partition = self.manager.hosted.partitions.get(topic_partition)
        if partition is None or partition.log is None:
            return
        broker, epoch = self.rng.choice([(2, 101), (2, 101), (2, 102), (3, 100)])
        end = partition.log.log_end_offset
        self.manager.fetches.fetch(
            FetchParams(broker, 0, 1, 1 << 20, FetchIsolation.LOG_END, epoch),
            {
                topic_partition: FetchPartitionRequest(
                    topic_partition, TOPIC_ID, -1, end, -1, 0, 1 << 20
                )
            },
            lambda _: None,
        )

    def commit_isr(self, topic_partition: TopicPartition) -> None:
        """The controller's answer to a proposal."""
        partition = self.manager.hosted.partitions.get(topic_partition)
        if partition is not None and partition.is_leader:
            isr = self.rng.choice([(1,), (1, 2), (1, 2, 3)])
            partition._commit_isr(
                LeaderAndIsr(
                    1, partition.leader_epoch, isr, partition_epoch=partition.partition_epoch
                )
            )

    async def expire(self, _: TopicPartition) -> None:
        """Nobody fetches for so long that no follower is caught up any more."""
        await asyncio.sleep(2 * LAG_S)
        self.manager.maybe_shrink_isr()

    def lead(self, topic_partition: TopicPartition) -> None:
        self._decide(topic_partition, leader=1)

    def follow(self, topic_partition: TopicPartition) -> None:
        self._decide(topic_partition, leader=3)

    def _decide(self, topic_partition: TopicPartition, leader: int) -> None:
        self.epoch += 1
        isr = self.rng.choice([(1,), (1, 2)])
        state = lisr(leader, self.epoch, isr, topic_partition=topic_partition)
        self.manager.become_leader_or_follower(3, 1, BROKER_EPOCH, [state], NODES)

    def replicate(self, topic_partition: TopicPartition) -> None:
        """A follower hears from its leader: batches, a high watermark, or both."""
        with suppress(ReplicaError, LogError):
            partition = self.manager.hosted.partition(topic_partition)
            assert partition.log is not None
            end = partition.log.log_end_offset
            records = batch(base_offset=end, leader_epoch=partition.leader_epoch)
            partition.append_as_follower(
                self.rng.choice([records, b""]), self.rng.randint(max(end - 3, 0), end + 1)
            )

    def truncate(self, topic_partition: TopicPartition) -> None:
        with suppress(ReplicaError):
            partition = self.manager.hosted.partition(topic_partition)
            assert partition.log is not None
            partition.truncate_to(max(partition.log.log_end_offset - 1, 0))

    def delete(self, topic_partition: TopicPartition) -> None:
        state = StopReplicaPartitionState(topic_partition, -1, delete_partition=True)
        self.manager.stop_replicas(3, 1, BROKER_EPOCH, [state])

    def fail(self, topic_partition: TopicPartition) -> None:
        self.manager.storage_failures.mark_offline(topic_partition)


async def live(broker: Broker) -> None:
    for _ in range(STEPS):
        broker.check(await broker.step())
    for topic_partition in PARTITIONS:
        broker.fail(topic_partition)
        broker.check("fail")
    await asyncio.gather(*broker.futures)  # raises what was not as it should be
    assert len(broker.futures) > STEPS / 10
    assert broker.node.waiting == 0
    await broker.manager.shutdown()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("min_bytes", "max_bytes"), [(1, 1 << 20), (SIZE + 1, 2 * SIZE), (3 * SIZE, 1 << 20)]
)
def test_what_is_kept_is_what_a_full_read_finds(
    tmp_path: Path, seed: int, min_bytes: int, max_bytes: int
) -> None:
    async def main() -> None:
        await live(Broker(tmp_path, Random(seed), min_bytes=min_bytes, max_bytes=max_bytes))

    run(main())

"""Control requests on a broker's replicas, and what becomes of their logs."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log import Log
from nemesis.reference.model import TopicPartition, UpdateMetadataPartitionState
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import TOPIC_ID, TP, lisr
from tests.reference.log.batches import batch
from tests.reference.server.one_broker import BROKER_EPOCH, BROKERS, Node, on_node


def leader_fetched_by(node: Node) -> int | None:
    """The broker from which ``node`` fetches the partition, None if it does not fetch it."""
    threads = node.manager.fetching.leaders._threads
    leaders = [leader.id for leader, thread in threads.items() if TP in thread.topic_partitions]
    return leaders[0] if leaders else None


def test_requests_of_a_deposed_controller_are_refused(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(), epoch=5) == (ErrorCode.none, {TP: ErrorCode.none})
        stale = ErrorCode.stale_controller_epoch
        assert node.lisr(lisr(leader_epoch=1), epoch=4) == (stale, {})
        assert node.stop(-2, delete=True, epoch=4) == (stale, {})
        assert node.update_metadata(epoch=4) is stale
        assert node.manager.hosted.partition(TP).leader_epoch == 0
        handled = [
            (e["api"], e["controller_epoch"], e["error"])
            for e in node.trace.of(Kind.CONTROL_REQUEST_HANDLED)
        ]
        assert handled == [
            ("UpdateMetadata", 1, "NONE"),
            ("LeaderAndIsr", 5, "NONE"),
            ("LeaderAndIsr", 4, "STALE_CONTROLLER_EPOCH"),
            ("StopReplica", 4, "STALE_CONTROLLER_EPOCH"),
            ("UpdateMetadata", 4, "STALE_CONTROLLER_EPOCH"),
        ]

    on_node(tmp_path, scenario)


@pytest.mark.parametrize(
    ("broker_epoch", "error"),
    [
        (BROKER_EPOCH - 1, ErrorCode.stale_broker_epoch),
        (BROKER_EPOCH, ErrorCode.none),
        (BROKER_EPOCH + 1, ErrorCode.none),
        (-1, ErrorCode.none),
    ],
)
def test_requests_for_an_earlier_life_are_refused(
    tmp_path: Path, broker_epoch: int, error: ErrorCode
) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(), broker_epoch=broker_epoch)[0] is error
        assert node.update_metadata(broker_epoch=broker_epoch) is error

    on_node(tmp_path, scenario)


def test_only_a_newer_leader_epoch_counts(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(leader=1, leader_epoch=3))[1] == {TP: ErrorCode.none}
        for old in (lisr(leader=2, leader_epoch=3), lisr(leader=2, leader_epoch=2)):
            assert node.lisr(old)[1] == {TP: ErrorCode.stale_controller_epoch}
        old_partition_epoch = lisr(leader=2, leader_epoch=4, partition_epoch=29)
        assert node.lisr(old_partition_epoch)[1] == {TP: ErrorCode.stale_controller_epoch}
        assert node.manager.hosted.partition(TP).is_leader

    on_node(tmp_path, scenario)


def test_without_a_live_leader_nothing_changes_but_the_log_exists(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        for leader in (-1, 9):
            assert node.lisr(lisr(leader=leader, leader_epoch=7))[1] == {TP: ErrorCode.none}
        assert node.manager.hosted.partition(TP).leader_epoch == -1
        assert node.logs.get_log(TP) is not None
        assert len(node.trace.of(Kind.LOG_LOADED)) == 1
        assert node.trace.of(Kind.BECOME_FOLLOWER) == []

    on_node(tmp_path, scenario)


def test_a_leader_is_followed_that_a_late_update_metadata_left_out(tmp_path: Path) -> None:
    """As in `transactions` with all faults, seed 50027: a copy of an UpdateMetadata came a second after the others."""

    async def scenario(node: Node) -> None:
        without_2 = [broker for broker in BROKERS if broker.id != 2]
        late = node.manager.maybe_update_metadata_cache(3, 1, BROKER_EPOCH, without_2, [])
        assert late is ErrorCode.none
        assert node.lisr(lisr(leader=2, leader_epoch=7))[1] == {TP: ErrorCode.none}
        assert node.manager.hosted.partition(TP).leader_epoch == 7
        assert len(node.trace.of(Kind.BECOME_FOLLOWER)) == 1
        await asyncio.sleep(0.1)
        assert node.peers

    on_node(tmp_path, scenario)


def test_the_answers_for_each_partition_are_traced_after_their_effects(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=1, leader_epoch=3))
        node.lisr(lisr(leader=2, leader_epoch=3))  # an old state: nothing changes
        node.update_metadata()  # is known already
        node.stop(2, delete=False)
        node.stop(3, delete=True)
        answers = [
            (e["api"], e.get("leader"), e["leader_epoch"], e.get("step"), e["error"])
            for e in node.trace.of(Kind.CONTROL_REQUEST_ANSWERED)
        ]
        assert answers == [
            ("UpdateMetadata", 1, 0, None, "NONE"),
            ("LeaderAndIsr", 1, 3, None, "NONE"),
            ("StopReplica", None, 2, "stop", "FENCED_LEADER_EPOCH"),
            ("StopReplica", None, 3, "delete", "NONE"),
        ]
        assert node.trace.of(Kind.METADATA_UPDATED)[0]["live"] == [1, 2, 3]

    on_node(tmp_path, scenario)


@pytest.mark.parametrize(("leader_epoch", "live"), [(1, [1, 2, 3]), (2, [1, 3]), (3, [1, 3])])
def test_the_brokers_of_a_late_update_metadata_are_not_traced_as_live(
    tmp_path: Path, leader_epoch: int, live: list[int]
) -> None:
    async def scenario(node: Node) -> None:
        without_2 = [broker for broker in BROKERS if broker.id != 2]
        for brokers, epoch in ((BROKERS, 2), (without_2, leader_epoch)):
            state = UpdateMetadataPartitionState(TP, TOPIC_ID, 1, 1, epoch, (1,), 0, (1, 2, 3))
            node.manager.maybe_update_metadata_cache(3, 1, BROKER_EPOCH, brokers, [state])
        known = [broker.id for broker in node.cache.alive_brokers()]
        assert known == live
        assert node.trace.of(Kind.METADATA_UPDATED)[-1]["live"] == live

    on_node(tmp_path, scenario)


def test_a_replica_of_somebody_else_or_of_another_topic_is_refused(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert node.lisr(lisr(leader=2, replicas=(2, 3)))[1] == {
            TP: ErrorCode.unknown_topic_or_partition
        }
        node.lisr(lisr())
        assert node.lisr(lisr(leader_epoch=1, topic_id=UUID(int=8)))[1] == {
            TP: ErrorCode.inconsistent_topic_id
        }

    on_node(tmp_path, scenario)


def test_a_stray_log_of_an_earlier_topic_of_the_name_gives_way(tmp_path: Path) -> None:
    """A reassignment took the replica away while the broker was down; then the topic was deleted and created anew."""

    async def first(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        await node.produce(batch(3))

    async def second(node: Node) -> None:
        assert node.lisr(lisr(topic_id=UUID(int=8)))[1] == {TP: ErrorCode.none}
        assert node.manager.hosted.partition(TP).leader_log.log_end_offset == 0
        stopped = [(e["topic_id"], e["step"]) for e in node.trace.of(Kind.REPLICA_STOPPED)]
        assert stopped == [(str(TOPIC_ID), "deleting"), (str(TOPIC_ID), "delete")]
        # One that is hosted does not give way: the word may be the older one.
        assert node.lisr(lisr(leader_epoch=9))[1] == {TP: ErrorCode.inconsistent_topic_id}

    on_node(tmp_path, first)
    on_node(tmp_path, second)


def test_a_served_replica_of_a_deleted_topic_gives_way_to_the_next_topic_of_the_name(
    tmp_path: Path,
) -> None:
    """A reassignment took the replica away while the broker's session was lost: no StopReplica comes."""

    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        await node.produce(batch(3))
        next_topic = lisr(topic_id=UUID(int=8))
        assert node.lisr(next_topic)[1] == {TP: ErrorCode.inconsistent_topic_id}
        node.announce_deletion()
        assert node.lisr(next_topic)[1] == {TP: ErrorCode.none}
        assert node.manager.hosted.partition(TP).leader_log.log_end_offset == 0
        stopped = [(e["topic_id"], e["step"]) for e in node.trace.of(Kind.REPLICA_STOPPED)]
        assert stopped == [(str(TOPIC_ID), "deleting"), (str(TOPIC_ID), "delete")]
        late = lisr(leader_epoch=9)
        assert node.lisr(late)[1] == {TP: ErrorCode.unknown_topic_id}

    on_node(tmp_path, scenario)


def test_a_served_replica_gives_way_in_a_later_registration(tmp_path: Path) -> None:
    """Its topic was deleted while the broker was away; no controller announces that again."""

    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)), broker_epoch=BROKER_EPOCH)
        stale = lisr(isr=(1,))
        assert node.lisr(stale, broker_epoch=BROKER_EPOCH + 1)[1] == {
            TP: ErrorCode.stale_controller_epoch
        }
        next_topic = lisr(topic_id=UUID(int=8))
        assert node.lisr(next_topic, broker_epoch=BROKER_EPOCH + 1)[1] == {
            TP: ErrorCode.inconsistent_topic_id
        }
        assert node.lisr(next_topic, broker_epoch=BROKER_EPOCH + 2)[1] == {TP: ErrorCode.none}
        assert node.manager.hosted.partition(TP).topic_id == UUID(int=8)

    on_node(tmp_path, scenario)


def test_a_follower_fetches_from_its_leader_and_moves_with_it(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2))
        await asyncio.sleep(0.01)
        node.lisr(lisr(leader=3, leader_epoch=1))
        await asyncio.sleep(0.01)
        node.lisr(lisr(leader=3, leader_epoch=2))
        await asyncio.sleep(0.01)
        assert [len(peer.requests) for peer in node.peers] == [1, 1]
        assert leader_fetched_by(node) == 3
        node.lisr(lisr(leader=1, leader_epoch=3))
        assert leader_fetched_by(node) is None

    on_node(tmp_path, scenario)


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [
        (2, ErrorCode.fenced_leader_epoch),
        (3, ErrorCode.none),
        (-1, ErrorCode.none),
    ],
)
def test_stop_replica_checks_the_leader_epoch(
    tmp_path: Path, leader_epoch: int, error: ErrorCode
) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2, leader_epoch=3))
        assert node.stop(leader_epoch, delete=False)[1] == {TP: error}
        fetches_from = leader_fetched_by(node)
        assert fetches_from == (2 if error is ErrorCode.fenced_leader_epoch else None)
        assert len(node.trace.of(Kind.REPLICA_STOPPED)) == (error is ErrorCode.none)

    on_node(tmp_path, scenario)


def test_a_deleted_replica_is_gone_and_may_come_back_as_a_new_topic(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        await node.produce(batch(3))
        node.announce_deletion()
        assert node.stop(-2, delete=True)[1] == {TP: ErrorCode.none}
        assert node.logs.get_log(TP) is None
        about = {"topic": "t", "topic_id": str(TOPIC_ID), "partition": 0}
        assert node.trace.of(Kind.REPLICA_STOPPED) == [
            {**about, "step": "deleting"},  # before it is gone: the broker may be killed
            {**about, "step": "delete"},
        ]
        assert node.stop(-2, delete=True)[1] == {TP: ErrorCode.none}
        assert node.lisr(lisr(topic_id=UUID(int=8)))[1] == {TP: ErrorCode.none}
        assert node.manager.hosted.partition(TP).leader_log.log_end_offset == 0

    on_node(tmp_path, scenario)


def test_what_was_said_before_a_replica_was_taken_away_does_not_bring_it_back(
    tmp_path: Path,
) -> None:
    async def scenario(node: Node) -> None:
        late = lisr(leader=1, leader_epoch=3, isr=(1,))
        assert node.lisr(late)[1] == {TP: ErrorCode.none}
        assert node.stop(4, delete=True)[1] == {TP: ErrorCode.none}
        for said_before in (late, lisr(leader=2, leader_epoch=4)):
            assert node.lisr(said_before)[1] == {TP: ErrorCode.stale_controller_epoch}
        assert node.logs.get_log(TP) is None
        assert node.lisr(lisr(leader=2, leader_epoch=5))[1] == {TP: ErrorCode.none}
        assert node.stop(4, delete=True)[1] == {TP: ErrorCode.fenced_leader_epoch}
        assert node.logs.get_log(TP) is not None

    on_node(tmp_path, scenario)


def test_late_words_about_a_deleted_topic_do_not_touch_its_successor(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        node.announce_deletion()
        node.stop(-2, delete=True)
        # It does not come back by a LeaderAndIsr that was on its way, not even with a newer epoch.
        assert node.lisr(lisr(leader_epoch=9))[1] == {TP: ErrorCode.unknown_topic_id}
        assert node.logs.get_log(TP) is None
        node.lisr(lisr(topic_id=UUID(int=8), isr=(1,)))
        await node.produce(batch(3))
        # The StopReplica of the old topic is delivered a second time; it names no topic id.
        for delete in (False, True):
            refused = node.stop(-2, delete=delete)[1]
            assert refused == {TP: ErrorCode.fenced_leader_epoch}
        node.announce_deletion()
        assert node.stop(-2, delete=True)[1] == {TP: ErrorCode.fenced_leader_epoch}
        assert node.manager.hosted.partition(TP).leader_log.log_end_offset == 3

    on_node(tmp_path, scenario)


def test_a_deletion_that_nobody_announced_is_refused(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2, leader_epoch=3))
        assert node.stop(-2, delete=True)[1] == {TP: ErrorCode.fenced_leader_epoch}
        assert leader_fetched_by(node) == 2
        assert node.trace.of(Kind.REPLICA_STOPPED) == []

    on_node(tmp_path, scenario)


def test_a_log_that_fails_takes_its_replica_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise KafkaStorageError("the disk is gone")

    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        monkeypatch.setattr(Log, "append_as_leader", fail)
        storage_error = ErrorCode.kafka_storage_error
        assert (await node.produce(batch(1)))[TP].error is storage_error
        assert (await node.fetch(0))[0].error is storage_error
        assert node.lisr(lisr(leader_epoch=1))[1] == {TP: storage_error}

    on_node(tmp_path, scenario)


async def checkpoint(node: Node) -> None:
    node.manager.checkpoint_high_watermarks()


@pytest.mark.parametrize(
    ("call", "use"),
    [
        ("append", lambda node: node.produce(batch(1))),
        ("read", lambda node: node.fetch(0)),
        ("replace", checkpoint),
    ],
)
def test_a_medium_that_fails_takes_its_whole_log_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, use: Callable[[Node], Any]
) -> None:
    """Whatever the broker wants of it; and with the last directory the broker has to halt (KIP-112)."""

    def fail(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    async def scenario(node: Node) -> None:
        other = TopicPartition("t", 1)
        node.lisr(lisr(isr=(1,)), lisr(isr=(1,), topic_partition=other))
        await node.produce(batch(1))
        with monkeypatch.context() as patched:
            patched.setattr(RealDisk, call, fail)
            await use(node)
        async with asyncio.timeout(1.0):
            await node.manager.storage_failures.all_log_dirs_failed.wait()
        assert node.logs.live_log_dirs == ()
        assert node.log_dir_failures == 0  # It halts instead.
        assert node.logs.all_logs() == {}
        for topic_partition in (TP, other):
            with pytest.raises(ReplicaError, match="is offline"):
                node.manager.hosted.partition(topic_partition)
        new = replace(lisr(topic_partition=TopicPartition("t", 2)), is_new=True)
        assert node.lisr(new)[1] == {new.topic_partition: ErrorCode.kafka_storage_error}

    on_node(tmp_path, scenario)


def test_the_other_log_directory_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories = [str(tmp_path / name) for name in ("one", "two")]
    append = RealDisk.append

    def fail_on_the_first(disk: RealDisk, path: str, data: bytes) -> None:
        if path.startswith(directories[0]):
            raise OSError(errno.ENOSPC, "No space left on device")
        append(disk, path, data)

    async def scenario(node: Node) -> None:
        other = TopicPartition("t", 1)
        node.lisr(lisr(isr=(1,)), lisr(isr=(1,), topic_partition=other))
        monkeypatch.setattr(RealDisk, "append", fail_on_the_first)
        results = await node.produce(batch(1), topic_partitions=(TP, other))
        assert [results[key].error for key in (TP, other)] == [
            ErrorCode.kafka_storage_error,
            ErrorCode.none,
        ]
        await asyncio.sleep(0.01)
        assert node.logs.live_log_dirs == (directories[1],)
        assert set(node.logs.all_logs()) == {other}
        assert not node.manager.storage_failures.all_log_dirs_failed.is_set()
        assert node.log_dir_failures == 1
        node.manager.checkpoint_high_watermarks()
        assert node.logs.read_high_watermarks() == {other: 1}

    on_node(tmp_path, scenario, **{"log.dirs": directories})


def test_high_watermarks_survive_a_restart(tmp_path: Path) -> None:
    async def first(node: Node) -> None:
        node.lisr(lisr(isr=(1,)))
        await node.produce(batch(3))

    async def second(node: Node) -> None:
        (loaded,) = node.trace.of(Kind.LOG_LOADED)
        assert (loaded["log_end_offset"], loaded["high_watermark"]) == (3, 3)
        assert loaded["topic_id"] == str(TOPIC_ID)

    on_node(tmp_path, first)
    on_node(tmp_path, second)
    on_node(tmp_path, second)  # nobody hosted it in between (KAFKA-1647)

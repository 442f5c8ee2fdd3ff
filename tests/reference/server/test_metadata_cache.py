"""MetadataCache: brokers are replaced, partitions merged, deleted ones removed, snapshots never change."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from nemesis.reference.model import (
    LEADER_DURING_DELETE,
    Broker,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.server.metadata_cache import MetadataCache

TOPIC_ID = UUID(int=7)
BROKERS = [Broker.at(2, "b", 9092), Broker.at(1, "a", 9092)]


def state(partition: int, leader: int, topic: str = "t") -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        topic_partition=TopicPartition(topic, partition),
        topic_id=TOPIC_ID if topic == "t" else UUID(int=8),
        controller_epoch=1,
        leader=leader,
        leader_epoch=0,
        isr=(leader,),
        partition_epoch=0,
        replicas=(1, 2),
    )


def test_it_is_empty_before_the_first_update() -> None:
    cache = MetadataCache(1)

    assert cache.controller_id is None
    assert cache.alive_brokers() == []
    assert cache.topics() == []
    assert not cache.contains(TopicPartition("t", 0))


def test_an_update_merges_partitions_and_replaces_brokers() -> None:
    cache = MetadataCache(1)
    cache.update(1, 1, BROKERS, [state(0, leader=1), state(1, leader=2)])

    cache.update(2, 2, [Broker.at(2, "b", 9092)], [state(0, leader=2)])

    assert cache.controller_id == 2
    assert [broker.id for broker in cache.alive_brokers()] == [2]
    assert cache.topic_partitions("t") == {0: state(0, leader=2), 1: state(1, leader=2)}
    assert cache.partition_info(TopicPartition("t", 1)) == state(1, leader=2)


def test_topic_ids_are_known_both_ways() -> None:
    cache = MetadataCache(1)
    cache.update(1, 1, BROKERS, [state(0, leader=1)])

    assert cache.topic_id("t") == TOPIC_ID
    assert cache.topic_name(TOPIC_ID) == "t"
    assert cache.topic_name(UUID(int=9)) is None


def test_a_topic_is_gone_with_its_last_partition() -> None:
    cache = MetadataCache(1)
    cache.update(1, 1, BROKERS, [state(0, leader=1), state(0, leader=1, topic="u")])

    deleted = cache.update(1, 1, BROKERS, [state(0, leader=LEADER_DURING_DELETE)])

    assert deleted == [TopicPartition("t", 0)]
    assert cache.topics() == ["u"]
    assert cache.topic_id("t") is None
    assert cache.topic_name(TOPIC_ID) is None


def test_a_controller_that_is_not_alive_is_not_named() -> None:
    cache = MetadataCache(1)

    cache.update(3, 1, BROKERS, [])

    assert cache.controller_id is None


def test_a_snapshot_does_not_change_with_later_updates() -> None:
    cache = MetadataCache(1)
    cache.update(1, 1, BROKERS, [state(0, leader=1)])
    before = cache.snapshot

    cache.update(1, 1, BROKERS, [state(0, leader=2)])

    assert before.topics["t"][0].leader == 1


NEWEST = replace(state(0, leader=1), controller_epoch=2, leader_epoch=5, partition_epoch=8)
OLDER = [
    replace(NEWEST, leader=2, partition_epoch=7),
    replace(NEWEST, leader=2, leader_epoch=4, partition_epoch=9),
    replace(NEWEST, leader=2, controller_epoch=1, leader_epoch=6, partition_epoch=9),
]


@pytest.mark.parametrize("older", OLDER)
def test_an_older_state_does_not_come_back(older: UpdateMetadataPartitionState) -> None:
    cache = MetadataCache(1)
    cache.update(1, 2, BROKERS, [NEWEST])

    cache.update(1, 2, BROKERS, [older, state(1, leader=2)])

    assert cache.topic_partitions("t") == {0: NEWEST, 1: state(1, leader=2)}


@pytest.mark.parametrize("older", OLDER)
def test_live_brokers_of_a_late_update_do_not_come_back(
    older: UpdateMetadataPartitionState,
) -> None:
    cache = MetadataCache(1)
    cache.update(1, 2, BROKERS, [NEWEST])

    cache.update(1, 2, BROKERS[1:], [older, state(1, leader=2)])

    assert [broker.id for broker in cache.alive_brokers()] == [1, 2]


@pytest.mark.parametrize("older", OLDER)
def test_a_newer_state_replaces_an_older_one(older: UpdateMetadataPartitionState) -> None:
    cache = MetadataCache(1)
    cache.update(1, 2, BROKERS, [older])

    cache.update(1, 2, BROKERS, [NEWEST])

    assert cache.partition_info(NEWEST.topic_partition) == NEWEST


def test_equal_epochs_bring_what_else_changed() -> None:
    cache = MetadataCache(1)
    cache.update(1, 2, BROKERS, [NEWEST])

    cache.update(1, 2, BROKERS, [replace(NEWEST, offline_replicas=(2,))])

    assert cache.topic_partitions("t")[0].offline_replicas == (2,)


def test_a_deletion_and_a_topic_of_the_same_name_start_anew_whatever_the_epochs() -> None:
    cache = MetadataCache(1)
    cache.update(1, 2, BROKERS, [NEWEST])

    reborn = replace(state(0, leader=2), topic_id=UUID(int=9))
    cache.update(1, 2, BROKERS, [reborn])
    assert cache.topic_partitions("t") == {0: reborn}

    cache.update(1, 2, BROKERS, [replace(reborn, leader=LEADER_DURING_DELETE)])
    assert not cache.contains(TopicPartition("t", 0))


def test_what_was_deleted_stays_deleted_and_its_successor_stays() -> None:
    cache = MetadataCache(1)
    gone = state(0, leader=LEADER_DURING_DELETE)
    cache.update(1, 1, BROKERS, [state(0, leader=1), state(1, leader=2)])
    cache.update(1, 1, BROKERS, [gone])

    cache.update(1, 1, BROKERS, [NEWEST])
    assert cache.topic_partitions("t") == {1: state(1, leader=2)}

    reborn = replace(state(0, leader=2), topic_id=UUID(int=9))
    cache.update(1, 1, BROKERS, [reborn])
    assert cache.update(1, 1, BROKERS, [gone]) == []
    assert cache.partition_info(TopicPartition("t", 0)) == reborn
    assert cache.is_deleted(TOPIC_ID, 0)
    assert not cache.is_deleted(TOPIC_ID, 1)
    assert not cache.is_deleted(UUID(int=9), 0)
    assert not cache.is_deleted(None, 0)

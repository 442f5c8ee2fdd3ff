"""Which replica a consumer reads from (KIP-392), and what a follower gives it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.kafka_config import ConfigError
from nemesis.reference.model import Broker, BrokerEndPoint
from nemesis.reference.server.replica_selector import (
    ReplicaView,
    preferred_read_replica,
    rack_aware_replica,
)
from tests.reference.cluster.hosting import Host, config, lisr
from tests.reference.log.batches import batch
from tests.reference.server.one_broker import Node, on_node, time

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER = ReplicaView(10, 0.0, 1, "a")
NEAR = ReplicaView(9, 5.0, 2, "b")
NEARER = ReplicaView(10, 4.0, 3, "b")


@pytest.mark.parametrize(
    ("rack", "followers", "chosen"),
    [
        ("b", [NEAR, NEARER], 3),
        ("b", [NEAR, NEARER._replace(log_end_offset=9)], 2),  # who was caught up later
        ("a", [NEAR, NEARER._replace(rack="a")], None),  # the leader is as near
        ("c", [NEAR, NEARER], None),
        ("", [NEAR._replace(rack="")], None),
    ],
)
def test_a_replica_of_the_consumers_rack_is_preferred(
    rack: str, followers: list[ReplicaView], chosen: int | None
) -> None:
    assert rack_aware_replica(rack, LEADER, followers) == chosen


def test_only_a_member_of_the_isr_that_has_the_offset_is_preferred(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2)))
    host.partition.append_as_leader(batch(3), -1)

    def preferred(offset: int) -> int | None:
        return preferred_read_replica(
            host.partition, "b", offset, lambda n: BrokerEndPoint(n, "", 0, "b" if n > 1 else "a")
        )

    assert preferred(0) is None  # nobody has fetched in this epoch
    host.fetch(2, 3, epoch=0)
    host.fetch(3, 2, epoch=0)  # not in the ISR
    assert preferred(3) == 2
    assert preferred(4) is None
    host.partition.make_follower(lisr(leader=2, leader_epoch=1))
    assert preferred(0) is None


def test_a_follower_serves_consumers_below_its_high_watermark(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2))
        follower = node.manager.hosted.partition(
            next(iter(node.manager.hosted.partitions.values())).topic_partition
        )
        follower.append_as_follower(batch(2, leader_epoch=0), 1)
        polling = asyncio.ensure_future(node.fetch(0, rack_id="", max_wait_ms=900))
        await asyncio.sleep(0.1)
        assert not polling.done()
        follower.append_as_follower(b"", 2)
        (result,) = await polling
        assert (len(result.records), result.high_watermark, time()) == (len(batch(2)), 2, 0.1)
        (beyond,) = await node.fetch(3, rack_id="")
        assert beyond.error is ErrorCode.offset_out_of_range
        (older,) = await node.fetch(0)
        assert older.error is ErrorCode.not_leader_or_follower

    on_node(tmp_path, scenario)


def test_a_leader_sends_the_consumer_away_at_once(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.update_metadata()
        racks = [Broker.at(n, f"127.0.0.{n}", 9092, f"rack-{n}") for n in (1, 2, 3)]
        node.manager.maybe_update_metadata_cache(3, 1, -1, racks, [])
        node.lisr(lisr(isr=(1, 2)))
        await node.produce(batch(2), acks=1)
        await node.fetch(2, replica_id=2, epoch=0, max_wait_ms=0)
        (sent_away,) = await node.fetch(2, rack_id="rack-2")
        assert (sent_away.preferred_read_replica, sent_away.high_watermark) == (2, 2)
        assert time() == 0
        (stays,) = await node.fetch(0, rack_id="rack-1")
        assert (stays.preferred_read_replica, bool(stays.records)) == (-1, True)

    on_node(tmp_path, scenario, replica_selector_class=RACK_AWARE)


def test_another_selector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.Y.*replica\.selector\.class"):
        config(tmp_path, replica_selector_class="x.Y")

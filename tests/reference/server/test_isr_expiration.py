"""How soon a follower that stops fetching leaves the ISR: the task ``isr-expiration`` looks every half lag."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import lisr
from tests.reference.log.batches import batch
from tests.reference.server.one_broker import Node, on_node, time
from tests.reference.server.small_cluster import Cluster
from tests.reference.virtual_time import run

LAG_S = 2.0


@pytest.mark.parametrize("phase_s", [0.0, 0.01, 0.5, 0.99, 1.3])
def test_it_is_proposed_after_one_to_one_and_a_half_lags(tmp_path: Path, phase_s: float) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        await asyncio.sleep(phase_s)
        await node.fetch(0, replica_id=2, epoch=0, max_wait_ms=0)
        stopped = time()
        await node.produce(batch(1), acks=1)
        while not node.trace.of(Kind.ISR_CHANGE_PROPOSED):
            await asyncio.sleep(0.01)
        assert LAG_S <= time() - stopped <= 1.5 * LAG_S + 0.02

    on_node(tmp_path, scenario, replica_lag_time_max_ms=int(LAG_S * 1000))


def test_who_is_at_the_end_of_an_idle_log_stays(tmp_path: Path) -> None:
    """KAFKA-7152."""

    async def scenario(node: Node) -> None:
        node.lisr(lisr(isr=(1, 2)))
        await node.fetch(0, replica_id=2, epoch=0, max_wait_ms=0)
        await asyncio.sleep(5 * LAG_S)
        assert not node.trace.of(Kind.ISR_CHANGE_PROPOSED)

    on_node(tmp_path, scenario, replica_lag_time_max_ms=int(LAG_S * 1000))


@pytest.mark.parametrize("seed", range(3))
def test_with_the_controller_reachable_it_is_out_within_one_and_a_half_lags_and_a_second(
    tmp_path: Path, seed: int
) -> None:
    async def main() -> None:
        cluster = Cluster(tmp_path, seed)
        await cluster.start()
        await asyncio.sleep(1.0)
        cluster.wire.held |= {(3, 1)}  # what broker 3 asks of its leader
        lag_s = cluster.brokers[1].config.replica_lag_time_max_ms / 1000
        stopped = asyncio.get_running_loop().time()
        await cluster.produce(1, batch(1), acks=1)
        while 3 in cluster.state.isr:
            await asyncio.sleep(0.01)
            elapsed = asyncio.get_running_loop().time() - stopped
            assert elapsed <= 1.5 * lag_s + 1
        await cluster.stop()

    run(main())

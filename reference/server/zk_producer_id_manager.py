"""Producer ids, no two alike in the cluster: from the block that this broker has taken, then from the next one.

Kafka 3.9 has a broker ask the controller for its block (KIP-730) if ``inter.broker.protocol.version`` is 3.0 or later,
and the controller takes it as brokers did before. Here every broker takes its own, under either version; the znode is
the same.

Source: kafka.coordinator.transaction.ZkProducerIdManager. Ids of a block that are left when the broker ends are never
given out.
"""

from __future__ import annotations

import asyncio

from nemesis.reference.zk.producer_id_block import ProducerIdBlockZnode, ProducerIdsBlock


class ZkProducerIdManager:
    """The ids that this broker may give out."""

    def __init__(self, broker_id: int, blocks: ProducerIdBlockZnode) -> None:
        self._broker_id = broker_id
        self._blocks = blocks
        self._block: ProducerIdsBlock | None = None
        self._next_producer_id = 0
        self._one_at_a_time = asyncio.Lock()

    async def generate_producer_id(self) -> int:
        """Return an id that nobody else gets; waits for ZooKeeper as long as it takes.

        Raises what ``ProducerIdBlockZnode.get_new_producer_id_block`` does.
        """
        async with self._one_at_a_time:
            if self._block is None or self._next_producer_id > self._block.last_producer_id:
                self._block = await self._blocks.get_new_producer_id_block(self._broker_id)
                self._next_producer_id = self._block.first_producer_id
            producer_id = self._next_producer_id
            self._next_producer_id += 1
            return producer_id

"""``/latest_producer_id_block``: the block of a thousand producer ids that was given out last, and to which broker.

A broker takes the next block by writing it over the last one, provided that nobody has meanwhile. A write whose reply
was lost is recognised by what the znode then holds: it names the broker, and a broker takes one block at a time.
The controller takes blocks for brokers that ask it (AllocateProducerIds) in the same way, but recognises nothing.

Source: kafka's ZkProducerIdManager and ProducerIdBlockZNode of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from nemesis.reference.zk import znode_json
from nemesis.reference.zk.errors import (
    BadVersionError,
    ConnectionLossError,
    ZnodeFormatError,
)
from nemesis.reference.zk.zk_data import PRODUCER_ID_BLOCK
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

PRODUCER_ID_BLOCK_SIZE: Final = 1000
_MAX_PRODUCER_ID: Final = 2**63 - 1


class ProducerIdsBlock(NamedTuple):
    """The ids ``first_producer_id`` to ``last_producer_id``, both included, which are that broker's alone."""

    broker_id: int
    first_producer_id: int
    last_producer_id: int

    @property
    def size(self) -> int:
        return self.last_producer_id - self.first_producer_id + 1


class ProducerIdsExhaustedError(Exception):
    """All producer ids of 63 bits have been given out."""


def encode_producer_id_block(block: ProducerIdsBlock) -> bytes:
    """The znode's data, as Kafka writes it."""
    return znode_json.encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first_producer_id),
            "block_end": str(block.last_producer_id),
        }
    )


def decode_producer_id_block(data: bytes) -> ProducerIdsBlock:
    """Raises ``ZnodeFormatError``."""
    value = znode_json.decode(PRODUCER_ID_BLOCK, data)
    try:
        first, last = int(value["block_start"]), int(value["block_end"])
        if not 0 <= first <= last <= _MAX_PRODUCER_ID:
            raise ValueError(f"from {first} to {last}")
        return ProducerIdsBlock(znode_json.int32(value["broker"]), first, last)
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeFormatError(
            f"{PRODUCER_ID_BLOCK} is no block of producer ids: {error}: {data[:200]!r}"
        ) from error


class ProducerIdBlockZnode:
    """See the module."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session

    async def get_new_producer_id_block(self, broker_id: int) -> ProducerIdsBlock:
        """Take the next block; nobody else ever gets it. What was taken in a session that then ended is left out.

        Raises ``ProducerIdsExhaustedError``, ``ZnodeFormatError``, ``ClientClosedError``, and ``NoNodeError`` if
        somebody has deleted the znode, which every broker makes sure of when it starts.
        """

        return await self._session.retry_across_sessions(
            lambda: self._take(broker_id, self.conditional_update)
        )

    async def allocate(self, broker_id: int) -> ProducerIdsBlock:
        """Take the next block for another broker, as the controller; it is given out once.

        After a lost reply the block is left out: a later controller may have written the same one for that broker.
        Raises as above, and ``SessionExpiredError``: the controller's office ends with its session.
        """
        return await self._take(broker_id, self._compare_and_set)

    async def _take(
        self, broker_id: int, write: Callable[[ProducerIdsBlock, int], Awaitable[bool]]
    ) -> ProducerIdsBlock:
        while True:
            data, stat = await self._session.get(PRODUCER_ID_BLOCK)
            block = _next_block(broker_id, data)
            if await write(block, stat.version):
                return block

    async def _compare_and_set(self, block: ProducerIdsBlock, version: int) -> bool:
        data = encode_producer_id_block(block)
        try:
            await self._session.set_data(PRODUCER_ID_BLOCK, data, version)
        except BadVersionError:
            return False
        return True

    async def conditional_update(self, block: ProducerIdsBlock, version: int) -> bool:
        """Write the block over that version; return whether it is there, and so is ours."""
        data = encode_producer_id_block(block)
        lost = False

        async def attempt() -> None:
            nonlocal lost
            try:
                await self._session.writes.set_data(PRODUCER_ID_BLOCK, data, version)
            except ConnectionLossError:
                lost = True
                raise

        try:
            await self._session.retry_request_until_connected(attempt)
        except BadVersionError:
            return lost and await self._is_there(data, version + 1)
        return True

    async def _is_there(self, data: bytes, version: int) -> bool:
        """Whether the conflict is with an earlier attempt of ours."""
        stored, stat = await self._session.get(PRODUCER_ID_BLOCK)
        return stored == data and stat.version == version


def _next_block(broker_id: int, data: bytes) -> ProducerIdsBlock:
    first = decode_producer_id_block(data).last_producer_id + 1 if data else 0
    last = first + PRODUCER_ID_BLOCK_SIZE - 1
    if last > _MAX_PRODUCER_ID:
        raise ProducerIdsExhaustedError(f"no block of producer ids is left from {first} on")
    return ProducerIdsBlock(broker_id, first, last)

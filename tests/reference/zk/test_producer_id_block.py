"""Blocks of producer ids: no id is given twice, whatever becomes of writes, replies and sessions."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.ports import SessionListener, SessionState, ZnodeStat
from nemesis.reference.server.zk_producer_id_manager import ZkProducerIdManager
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk.errors import (
    BadVersionError,
    ConnectionLossError,
    SessionExpiredError,
    ZnodeFormatError,
)
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.producer_id_block import (
    ProducerIdBlockZnode,
    ProducerIdsBlock,
    ProducerIdsExhaustedError,
    decode_producer_id_block,
    encode_producer_id_block,
)
from nemesis.reference.zk.zk_data import PRODUCER_ID_BLOCK
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession
from tests.reference.zk.losing_client import losing, run


def test_a_block_has_kafkas_spelling() -> None:
    data = encode_producer_id_block(ProducerIdsBlock(3, 1000, 1999))
    assert json.loads(data) == {
        "version": 1,
        "broker": 3,
        "block_start": "1000",
        "block_end": "1999",
    }
    assert decode_producer_id_block(data) == ProducerIdsBlock(3, 1000, 1999)


@pytest.mark.parametrize(
    "data",
    [
        b"1000",
        b"{}",
        b'{"version":1,"broker":1,"block_start":"x","block_end":"1"}',
        b'{"version":1,"broker":1,"block_start":"2","block_end":"1"}',
        b'{"version":1,"broker":"1","block_start":"0","block_end":"999"}',
    ],
)
def test_what_is_no_block_is_refused(data: bytes) -> None:
    with pytest.raises(ZnodeFormatError, match="/latest_producer_id_block"):
        decode_producer_id_block(data)


class Store:
    """The znode."""

    data = b""
    version = 0


class UnreliableZooKeeperClient:
    """A session to the znode. What ``fate`` draws befalls each write: all is well, nothing is written, the reply is
    lost, the session ends with or without the write."""

    session_id = 1

    def __init__(self, store: Store, fate: Any) -> None:
        self.reads = self.writes = self
        self._store = store
        self._fate = fate
        self._listeners: list[SessionListener] = []

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def get(self, path: str, watch: object = None) -> tuple[bytes, ZnodeStat]:
        await asyncio.sleep(0)
        return self._store.data, stat(self._store.version)

    async def set_data(self, path: str, data: bytes, version: int) -> ZnodeStat:
        fate = self._fate()
        await asyncio.sleep(0)
        if "unwritten" not in fate:
            if version != self._store.version:
                raise BadVersionError(path)
            self._store.data, self._store.version = data, version + 1
        if "lost" in fate:
            raise ConnectionLossError(path)
        if "expired" in fate:
            self._tell(SessionState.EXPIRED)
            asyncio.get_running_loop().call_soon(self._tell, SessionState.CONNECTED)
            raise SessionExpiredError(path)
        return stat(self._store.version)

    def _tell(self, state: SessionState) -> None:
        for listener in self._listeners:
            listener(state)


def stat(version: int) -> ZnodeStat:
    return ZnodeStat(1, 1, version, 0, 0)


FATES = st.sampled_from(["", "", "lost", "lost unwritten", "expired", "expired unwritten"])


@given(st.lists(FATES, max_size=20), st.integers(1, 4))
def test_no_producer_id_is_given_twice(fates: list[str], brokers: int) -> None:
    coming = iter(fates)
    store = Store()

    async def test() -> None:
        managers = [
            ZkProducerIdManager(
                broker_id,
                ProducerIdBlockZnode(
                    ZooKeeperSession(
                        UnreliableZooKeeperClient(store, lambda: next(coming, "")),  # type: ignore[arg-type]
                        tracer=NullTracer(),
                    )
                ),
            )
            for broker_id in range(brokers)
        ]
        rng = Random(len(fates))
        asked = [rng.choice(managers) for _ in range(60)]
        for _ in range(3):
            ids = await asyncio.gather(*[m.generate_producer_id() for m in asked])
            given_out.extend(ids)
            for manager in managers:
                manager._next_producer_id += 990

    given_out: list[int] = []
    asyncio.run(asyncio.wait_for(test(), 30))
    assert len(set(given_out)) == len(given_out) == 180


def test_a_block_is_taken_once_though_its_reply_is_lost(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            zookeeper.lose_at = PRODUCER_ID_BLOCK
            blocks = zk_client.producer_ids
            assert await blocks.get_new_producer_id_block(1) == ProducerIdsBlock(1, 0, 999)
            assert await blocks.get_new_producer_id_block(1) == ProducerIdsBlock(1, 1000, 1999)

    run(test())


def test_the_controller_leaves_out_a_block_whose_reply_is_lost(zookeeper_address: str) -> None:
    """A later controller may have written the same block for the same broker."""

    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            zookeeper.lose_at = PRODUCER_ID_BLOCK
            assert await zk_client.producer_ids.allocate(7) == ProducerIdsBlock(7, 1000, 1999)

    run(test())


def test_somebody_elses_block_of_the_same_ids_is_not_taken_for_ones_own(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with (
            losing(zookeeper_address) as (_, client),
            losing(zookeeper_address) as (_, other),
        ):
            assert await client.producer_ids.conditional_update(ProducerIdsBlock(1, 0, 999), 0)
            assert not await other.producer_ids.conditional_update(ProducerIdsBlock(2, 0, 999), 0)
            assert await taken(other) == ProducerIdsBlock(2, 1000, 1999)

    run(test())


async def taken(zk_client: KafkaZkClient) -> ProducerIdsBlock:
    return await zk_client.producer_ids.get_new_producer_id_block(2)


def test_there_is_an_end_of_producer_ids(zookeeper_address: str) -> None:
    async def test() -> None:
        async with losing(zookeeper_address) as (zookeeper, zk_client):
            last = ProducerIdsBlock(1, 2**63 - 1000, 2**63 - 1)
            await zookeeper.set_data(PRODUCER_ID_BLOCK, encode_producer_id_block(last))
            with pytest.raises(ProducerIdsExhaustedError, match="no block of producer ids is left"):
                await taken(zk_client)

    run(test())

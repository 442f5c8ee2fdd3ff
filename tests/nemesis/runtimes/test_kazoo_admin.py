"""What the harness asks of a real ZooKeeper."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nemesis.runtimes.kazoo_admin import KazooAdmin
from tests.history.zookeeper_server import zookeeper_server


def test_a_znode_that_exists_is_not_created_again(tmp_path: Path) -> None:
    async def scene(address: str) -> None:
        async with KazooAdmin(address) as zookeeper:
            assert await zookeeper.create("/asked", b"first")
            assert not await zookeeper.create("/asked", b"second")
            znode = await zookeeper.get("/asked")
            assert znode is not None
            assert znode[0] == b"first"

    with zookeeper_server(tmp_path) as address:
        asyncio.run(scene(address))

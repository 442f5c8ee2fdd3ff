"""What a member says in four-letter words; the answers are those of a real ensemble."""

from __future__ import annotations

import asyncio

from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.interfaces.links import Address
from nemesis.runtimes.docker.zookeeper_members import (
    four_letter_word,
    parse_member,
    parse_sessions,
)

SRVR = """\
Zookeeper version: 3.9.4-7246445ec281f3dbf53dc54e970c914f39713903, built on 2025-08-19 19:53 UTC
Latency min/avg/max: 0/0.5161/13
Received: 412
Sent: 425
Connections: 3
Outstanding: 0
Zxid: 0x100000047
Mode: follower
Node count: 61
"""
CONS = """\
 /198.18.7.1:52316[0](queued=0,recved=1,sent=0)
 /198.18.7.21:41020[1](queued=0,recved=97,sent=105,sid=0x2000002f4cd0000,lop=PING,est=1753,to=2000,lcxid=0x60)
 /198.18.7.1:52298[1](queued=0,recved=15,sent=15,sid=0xf000002f4cd00001,lop=PING,est=1750,to=4000,lcxid=0xe)

"""
NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"


def test_a_serving_member_is_told_by_mode_epoch_and_sessions() -> None:
    member = parse_member(SRVR, CONS, epoch=1)
    sessions = (0xF000002F4CD00001 - 2**64, 0x2000002F4CD0000)
    assert member == ZooKeeperMember(mode="follower", epoch=1, sessions=sessions)


def test_a_member_that_follows_nobody_is_left_out() -> None:
    assert parse_member(NOT_SERVING, NOT_SERVING, epoch=1) is None


def test_a_connection_without_a_session_is_none() -> None:
    assert parse_sessions(CONS.splitlines()[0]) == ()


def test_the_whole_answer_is_read_and_silence_is_none() -> None:
    async def scene() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if await reader.readexactly(4) == b"srvr":
                for line in SRVR.splitlines(keepends=True):
                    writer.write(line.encode())
                    await writer.drain()
            else:
                await reader.read()  # until the caller gives up
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            address = Address(*server.sockets[0].getsockname())
            assert await four_letter_word(address, "srvr") == SRVR
            assert await four_letter_word(address, "cons", timeout_s=0.05) is None
        assert await four_letter_word(address, "srvr") is None

    asyncio.run(scene())

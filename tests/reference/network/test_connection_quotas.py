"""How many connections come in, from whom, and how fast."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.network.connection_quotas import ConnectionQuotas
from nemesis.reference.network.errors import TooManyConnectionsError
from nemesis.reference.network.rate import QUOTA_WINDOW_NUM, QUOTA_WINDOW_SIZE_S, Rate
from tests.reference.network.simulated import Served, configured, in_virtual_time


def test_at_the_bound_a_connection_waits_until_another_one_goes() -> None:
    async def test() -> None:
        async with Served(max_connections=1) as served:
            first, second = await served.connect(), await served.connect()
            second.ask("a", 2)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(60):
                    await served.next_request()
            first.close()
            served.answer(await served.next_request())
            assert await second.answer() == 2

    in_virtual_time(test)


def test_no_more_wait_than_the_backlog_holds() -> None:
    async def test() -> None:
        async with Served(max_connections=1, socket_listen_backlog_size=2) as served:
            clients = [await served.connect() for _ in range(5)]
            assert [await client.answer() for client in clients[3:]] == [None, None]

    in_virtual_time(test)


def test_one_host_has_no_more_than_its_share() -> None:
    async def test() -> None:
        properties = {"max.connections.per.ip": 2, "max.connections.per.ip.overrides": "10.0.0.7:1"}
        async with Served(**properties) as served:
            plain = [await served.connect(host="10.0.0.6") for _ in range(3)]
            bounded = [await served.connect(host="10.0.0.7") for _ in range(2)]
            assert await plain[2].answer() is None
            assert await bounded[1].answer() is None
            assert served.server.connection_quotas.count == 3
            plain[0].close()
            await asyncio.sleep(1.0)
            again = await served.connect(host="10.0.0.6")
            again.ask("a", 9)
            served.answer(await served.next_request())
            assert await again.answer() == 9

    in_virtual_time(test)


def test_connections_come_no_faster_than_the_creation_rate() -> None:
    async def test() -> None:
        async with Served(max_connection_creation_rate=2) as served:
            loop = asyncio.get_running_loop()
            began = loop.time()
            clients = [await served.connect() for _ in range(50)]
            for client in clients:
                client.ask("a")
            for _ in clients:
                await served.next_request()
            assert loop.time() - began > 10.0

    in_virtual_time(test)


@given(st.lists(st.sampled_from(["a", "b", "a-", "b-"]), max_size=40), st.integers(1, 4))
def test_the_count_is_that_of_the_open_connections(steps: list[str], bound: int) -> None:
    quotas = ConnectionQuotas(configured(max_connections_per_ip=bound), now=lambda: 0.0)
    open_connections: list[str] = []
    for step in steps:
        host = step[0]
        if step.endswith("-"):
            if host in open_connections:
                open_connections.remove(host)
                quotas.dec(host)
        elif open_connections.count(host) < bound:
            quotas.inc(host)
            open_connections.append(host)
        else:
            with pytest.raises(TooManyConnectionsError):
                quotas.inc(host)
        assert quotas.count == len(open_connections)


@given(st.lists(st.floats(0.0, 2.0), min_size=1, max_size=60), st.integers(1, 20))
def test_who_waits_for_the_throttle_time_gets_the_quota_and_one_burst(
    gaps_s: list[float], quota: int
) -> None:
    """The rate itself may be a little above the quota after a wait: Kafka divides by a time of 10 to 11 s, which falls
    back each second."""
    rate, now = Rate(), 0.0
    for count, gap_s in enumerate(gaps_s, start=1):
        now += gap_s
        rate.record(1, now)
        now += rate.throttle_time_s(quota, now)
        assert count <= quota * (now + QUOTA_WINDOW_NUM * QUOTA_WINDOW_SIZE_S) + 1


def test_a_first_burst_counts_as_if_the_window_had_been_quiet_before() -> None:
    rate = Rate()
    rate.record(20, 100.0)
    assert rate.measure(100.0) == pytest.approx(2.0)
    assert rate.measure(200.0) == 0.0

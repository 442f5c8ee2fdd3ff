"""Quotas of clients: who is counted, for how long they are muted, and where quotas come from."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from nemesis.reference.network.rate import QUOTA_WINDOW_NUM
from nemesis.reference.protocol.codec import Request
from nemesis.reference.protocol.versions import ApiKey
from nemesis.reference.server.client_quota_manager import (
    DEFAULT,
    MOST_CLIENTS,
    ClientQuotaManager,
    QuotaManagers,
)
from nemesis.reference.server.kafka_request_handler import KafkaRequestHandlerPool
from tests.reference.network.simulated import Served, in_virtual_time, response_to


def test_without_a_quota_nobody_is_counted() -> None:
    quotas = ClientQuotaManager()
    assert not quotas.is_enabled
    assert quotas.record_and_get_throttle_time_s("a", 10**9, 0.0) == 0.0


def test_a_quota_of_ones_own_goes_before_the_one_for_all() -> None:
    quotas = ClientQuotaManager()
    quotas.update_quota(DEFAULT, 100)
    quotas.update_quota("large", 10_000)
    assert quotas.record_and_get_throttle_time_s("large", 5_000, 0.0) == 0.0
    assert quotas.record_and_get_throttle_time_s("small", 5_000, 0.0) > 0.0
    quotas.update_quota("large", None)
    assert quotas.record_and_get_throttle_time_s("large", 0, 0.0) > 0.0


def test_who_has_been_silent_for_the_throttle_time_is_below_the_quota() -> None:
    quotas = ClientQuotaManager()
    quotas.update_quota("a", 100)
    throttle_s = quotas.record_and_get_throttle_time_s("a", 5_000, 0.0)
    assert throttle_s == pytest.approx((500 - 100) / 100 * QUOTA_WINDOW_NUM)
    assert quotas.record_and_get_throttle_time_s("a", 1, throttle_s) == 0.0


def test_the_silent_are_forgotten() -> None:
    quotas = ClientQuotaManager()
    quotas.update_quota(DEFAULT, 100)
    for number in range(3 * MOST_CLIENTS):
        quotas.record_and_get_throttle_time_s(str(number), 1, float(number))
    assert quotas.client_count <= MOST_CLIENTS


@pytest.mark.parametrize("value", ["0", "-1", "much", "nan"])
def test_what_is_no_rate_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"is no rate|could not convert"):
        QuotaManagers().update("a", {"producer_byte_rate": value})


def test_replicas_are_not_throttled() -> None:
    async def test() -> None:
        quotas = QuotaManagers()
        quotas.update(DEFAULT, {"consumer_byte_rate": "1"})
        partition = SimpleNamespace(records=b"x" * 1_000)
        response = SimpleNamespace(responses=(SimpleNamespace(partitions=(partition,)),))

        def fetch(replica_id: int) -> float:
            message = SimpleNamespace(replica_id=replica_id)
            return quotas.throttle_time_s(Request(ApiKey.FETCH, 4, 1, "c", message), 1, response)

        assert fetch(2) == 0.0
        assert fetch(-1) > 0.0

    in_virtual_time(test)


class Always(QuotaManagers):
    """Everybody is beyond a quota, by five seconds."""

    def throttle_time_s(self, request: Request, size: int, response: Any) -> float:
        return 5.0


class Answers:
    """Answers at once."""

    def handle(self, request: Request, _listener_name: str, _client_host: str) -> Any:
        return response_to(request.message)

    def waits(self, _request: Request) -> bool:
        return False


def test_who_is_beyond_the_quota_is_answered_at_once_and_then_muted() -> None:
    async def test() -> None:
        async with Served() as served:
            channel = served.server.data_plane_request_channel
            pool = KafkaRequestHandlerPool(
                channel, Answers(), name="p", num_threads=1, quotas=Always()
            )
            pool.start()
            loop, client = asyncio.get_running_loop(), await served.connect()
            client.ask("a", 1)
            client.ask("b", 2)
            assert await client.answer() == 1
            assert loop.time() < 1.0
            assert await client.answer() == 2
            assert loop.time() >= 5.0
            await pool.shutdown()

    in_virtual_time(test)

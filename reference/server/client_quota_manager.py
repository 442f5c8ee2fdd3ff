"""How many bytes a second a client may produce and consume, and for how long it is muted when it had more.

A quota belongs to a client id, or to all that have none of their own, and is set in ``/config/clients``
(``<default>`` for the latter) as ``producer_byte_rate`` and ``consumer_byte_rate``; without one nothing is counted. A
request that goes beyond it is answered at once, with the time for which its connection is muted then: as long as it
takes for the rate to come down to the quota. Replicas are never throttled. Source: kafka.server.ClientQuotaManager,
ThrottledChannel (KIP-13, KIP-219).

Limits: no quotas for users, of requests' time or of the controller's mutations; Describe- and AlterClientQuotas are
not offered. A consumer beyond its quota gets its records, where Kafka leaves them out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from nemesis.reference.network.rate import Rate
from nemesis.reference.protocol.codec import Request
from nemesis.reference.protocol.versions import ApiKey

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
DEFAULT: Final = "<default>"
MOST_CLIENTS: Final = 1_000
"""When so many are counted, those that have been silent for a whole window are forgotten."""


class ClientQuotaManager:
    """One kind of quota."""

    def __init__(self) -> None:
        self._quotas: dict[str, float] = {}
        self._rates: dict[str, Rate] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether anybody has a quota."""
        return bool(self._quotas)

    @property
    def client_count(self) -> int:
        """How many clients are counted."""
        return len(self._rates)

    def update_quota(self, client_id: str, bytes_per_s: float | None) -> None:
        """From now on; None: no quota of its own any more."""
        if bytes_per_s is None:
            self._quotas.pop(client_id, None)
        else:
            self._quotas[client_id] = bytes_per_s
        if not self._quotas:
            self._rates.clear()

    def record_and_get_throttle_time_s(self, client_id: str, size: int, now: float) -> float:
        """Count these bytes; returns for how long the client should be silent, 0 when it need not be."""
        quota = self._quotas.get(client_id, self._quotas.get(DEFAULT))
        if quota is None:
            return 0.0
        rate = self._rates.get(client_id)
        if rate is None:
            self._forget_the_silent(now)
            rate = self._rates[client_id] = Rate()
        rate.record(size, now)
        return rate.throttle_time_s(quota, now)

    def _forget_the_silent(self, now: float) -> None:
        if len(self._rates) >= MOST_CLIENTS:
            self._rates = {
                name: rate for name, rate in self._rates.items() if rate.measure(now) > 0
            }


class QuotaManagers:
    """All kinds, and which requests each counts."""

    def __init__(self) -> None:
        self.produce = ClientQuotaManager()
        self.fetch = ClientQuotaManager()

    def update(self, client_id: str, properties: Mapping[str, str]) -> None:
        """Take over what ``/config/clients`` has for a client id; raises ``ValueError`` when that is no rate."""
        rates = {
            key: _bytes_per_s(key, properties.get(key))
            for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
        }
        self.produce.update_quota(client_id, rates[PRODUCER_BYTE_RATE])
        self.fetch.update_quota(client_id, rates[CONSUMER_BYTE_RATE])

    def throttle_time_s(self, request: Request, size: int, response: Any) -> float:
        """Count a request of this size and its answer; returns for how long its connection should be muted."""
        now = asyncio.get_running_loop().time
        if request.api_key == ApiKey.PRODUCE and self.produce.is_enabled:
            client_id = request.client_id or ""
            return self.produce.record_and_get_throttle_time_s(client_id, size, now())
        if request.api_key == ApiKey.FETCH and self.fetch.is_enabled and _is_consumers(request):
            records = sum(
                len(partition.records or b"")
                for topic in response.responses
                for partition in topic.partitions
            )
            client_id = request.client_id or ""
            return self.fetch.record_and_get_throttle_time_s(client_id, records, now())
        return 0.0


def _is_consumers(request: Request) -> bool:
    state = getattr(request.message, "replica_state", None)
    replica_id = request.message.replica_id if state is None else state.replica_id
    return bool(replica_id < 0)


def _bytes_per_s(key: str, value: str | None) -> float | None:
    if value is None:
        return None
    rate = float(value)
    if not rate > 0:
        raise ValueError(f"{key} is {value}, which is no rate")
    return rate

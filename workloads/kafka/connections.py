"""The connections of one client process: one to each broker, and short ones to any address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.connection import KafkaConnection
from nemesis.workloads.kafka.errors import ConnectionFailed
from nemesis.workloads.kafka.frames import Traffic

Address = tuple[str, int]


class Connections:
    """Connects when a connection is first needed, and again after a failure."""

    def __init__(self, *, client_id: str, source_host: str, codec: Codec, traffic: Traffic) -> None:
        self._client_id = client_id
        self._source_host = source_host
        self._codec = codec
        self._traffic = traffic
        self._connections: dict[int, KafkaConnection] = {}

    async def request(
        self,
        brokers: Mapping[int, Address],
        node: int,
        request: Any,
        timeout_s: float,
        *,
        is_answered: bool = True,
    ) -> Any:
        """Send one request to one of the known brokers; returns its response. Raises ``KafkaError``."""
        if (address := brokers.get(node)) is None:
            raise ConnectionFailed("BROKER_UNKNOWN", definite=True)
        connection = self._connections.get(node)
        if connection is None or connection.address != address:
            if connection is not None:
                connection.close()
            connection = self._connections[node] = self._connect(address)
        try:
            return await connection.request(request, timeout_s=timeout_s, is_answered=is_answered)
        except BaseException:
            del self._connections[node]
            raise

    async def ask(self, address: Address, request: Any, timeout_s: float) -> Any:
        """Send one request on a connection of its own. Raises ``KafkaError``."""
        connection = self._connect(address)
        try:
            return await connection.request(request, timeout_s=timeout_s)
        finally:
            connection.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connect(self, address: Address) -> KafkaConnection:
        return KafkaConnection(
            *address,
            client_id=self._client_id,
            source_host=self._source_host,
            codec=self._codec,
            traffic=self._traffic,
        )

"""A way to another broker, as those who send requests see it; ``nemesis.reference.network.network_client`` is the real
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.network.network_client import BrokerConnection
from nemesis.reference.protocol import codec as wire_format
from nemesis.reference.protocol.codec import Codec


class Connection(Protocol):
    """One request in flight; any failure raises NetworkError and the next request connects anew."""

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any: ...
    async def close(self) -> None: ...


ConnectionFactory = Callable[[str], Connection]
"""Makes a connection for the given client id."""


def connection_factory(config: KafkaConfig, codec: Codec = wire_format) -> ConnectionFactory:
    """Connections that leave from the broker's own address."""

    def connect(client_id: str) -> Connection:
        return BrokerConnection(
            client_id=client_id,
            source_address=None if config.source_host is None else (config.source_host, 0),
            max_response_bytes=config.socket_request_max_bytes,
            codec=codec,
        )

    return connect

"""The broker's listeners, and everything between them and the request handlers.

    Acceptor (one for each listener) → Processors → RequestChannel → KafkaRequestHandlers → KafkaApis
                                            ↑____________ responses ____________|

The data plane has ``num.network.threads`` Processors for each listener and one RequestChannel. The control plane has
a RequestChannel of its own, and with ``control.plane.listener.name`` also a listener of its own with one Processor.
Without it control requests come in over the data plane's listeners and are put into the control plane's queue there,
so that a LeaderAndIsr never waits behind produces (Kafka has no control plane then; docs/deviations.md).

Threads are objects that the event loop runs; seven steps of a Processor stand where Kafka's have a loop of their own.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import EndPoint
from nemesis.reference.network.acceptor import Acceptor
from nemesis.reference.network.connection_quotas import ConnectionQuotas
from nemesis.reference.network.memory_pool import MemoryPool
from nemesis.reference.network.processor import Processor
from nemesis.reference.network.request_channel import RequestChannel
from nemesis.reference.ports import SocketBuffers
from nemesis.reference.protocol import codec as wire_format
from nemesis.reference.protocol.codec import Codec

CONTROL_PLANE_QUEUE_SIZE: Final = 20
"""As in Kafka, which cannot be told another one."""


class SocketServer:
    """All listeners of a broker."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        codec: Codec = wire_format,
        socket_buffers: SocketBuffers | None = None,
    ) -> None:
        """``socket_buffers`` sets the sizes of sockets' buffers; None where there are no sockets."""
        self._config = config
        self._codec = codec
        self._socket_buffers = socket_buffers
        self.data_plane_request_channel = RequestChannel(config.queued_max_requests, codec)
        self.control_plane_request_channel = RequestChannel(CONTROL_PLANE_QUEUE_SIZE, codec)
        self.connection_quotas = ConnectionQuotas(
            config, now=lambda: asyncio.get_running_loop().time()
        )
        self._data_plane_memory_pool = MemoryPool(config.queued_max_request_bytes)
        self.acceptors: list[Acceptor] = []
        self._next_processor_id = 0

    async def startup(self) -> dict[str, int]:
        """Listen everywhere; returns each listener's port (for port 0 the one that was given).

        Raises OSError when one is taken.
        """
        self._create_control_plane_acceptor_and_processor()
        self._create_data_plane_acceptors_and_processors()
        return {
            acceptor.end_point.listener_name: await acceptor.start() for acceptor in self.acceptors
        }

    async def shutdown(self) -> None:
        """Stop listening and close every connection."""
        for acceptor in self.acceptors:
            acceptor.stop_accepting()
        for _ in range(2):  # those under way come to their Processors
            await asyncio.sleep(0)
        for acceptor in self.acceptors:
            acceptor.shutdown()
            for processor in acceptor.processors:
                processor.shutdown()
        await asyncio.sleep(0)  # connections close their sockets one iteration later

    def _create_control_plane_acceptor_and_processor(self) -> None:
        end_point = self._config.listener_config.control_plane_end_point
        if end_point is not None:
            processor = self._new_processor(
                end_point, self.control_plane_request_channel, MemoryPool()
            )
            self._add_acceptor(end_point, [processor])

    def _create_data_plane_acceptors_and_processors(self) -> None:
        for end_point in self._config.listener_config.data_plane_end_points:
            processors = [
                self._new_processor(
                    end_point, self.data_plane_request_channel, self._data_plane_memory_pool
                )
                for _ in range(self._config.num_network_threads)
            ]
            self._add_acceptor(end_point, processors)

    def _add_acceptor(self, end_point: EndPoint, processors: list[Processor]) -> None:
        self.acceptors.append(
            Acceptor(
                end_point,
                processors,
                config=self._config,
                connection_quotas=self.connection_quotas,
                socket_buffers=self._socket_buffers,
            )
        )

    def _new_processor(
        self, end_point: EndPoint, request_channel: RequestChannel, memory_pool: MemoryPool
    ) -> Processor:
        processor_id, self._next_processor_id = self._next_processor_id, self._next_processor_id + 1
        processor = Processor(
            processor_id,
            end_point.listener_name,
            request_channel=request_channel,
            control_plane=self.control_plane_request_channel,
            connection_quotas=self.connection_quotas,
            memory_pool=memory_pool,
            max_idle_s=self._config.connections_max_idle_ms / 1000,
            codec=self._codec,
        )
        self.connection_quotas.add_closer(processor.wakeup)
        return processor

"""A listening socket of the simulated network, with the interface of ``asyncio.Server``.

``wait_closed`` waits for the connections, too, as asyncio does since Python 3.12.1, whatever the version.
"""

from __future__ import annotations

import asyncio
from asyncio.events import AbstractServer
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any

from nemesis.simulation.transport import SimulatedTransport

if TYPE_CHECKING:
    from nemesis.simulation.loop import SimulationLoop


class ListeningSocket:
    """As much of a socket as a server shows."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        """The host and port that are listened at."""
        return self._address


class SimulatedServer(AbstractServer):
    """Accepts in the context in which it was made."""

    def __init__(
        self,
        loop: SimulationLoop,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        address: tuple[str, int],
        on_closed: Callable[[tuple[str, int], None], Any],
        context: Context,
    ) -> None:
        self._loop = loop
        self._protocol_factory = protocol_factory
        self._address = address
        self._on_closed = on_closed
        self.context = context
        self._is_open = True
        self._clients: dict[SimulatedTransport, None] = {}
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def sockets(self) -> tuple[ListeningSocket, ...]:
        return (ListeningSocket(self._address),) if self._is_open else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._is_open

    def close(self) -> None:
        """Listen no more; connections that were made stay."""
        self.close_socket()
        self._wake_if_done()

    def close_socket(self) -> None:
        """What the kernel does for a process that has died."""
        if self._is_open:
            self._is_open = False
            self._on_closed(self._address, None)

    async def start_serving(self) -> None:
        """It serves from the start."""

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        try:
            await self._loop.create_future()
        finally:
            self.close()

    async def wait_closed(self) -> None:
        """Wait until it is closed and its last connection has gone."""
        if self._is_open or self._clients:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def close_clients(self) -> None:
        for transport in list(self._clients):
            transport.close()

    def abort_clients(self) -> None:
        for transport in list(self._clients):
            transport.abort()

    def accept(self, transport: SimulatedTransport) -> None:
        """A caller has connected: tell the process when it runs."""
        self._clients[transport] = None
        transport.when_lost(self._detach)
        self._loop.call_soon(self._greet, transport, context=self.context)

    def _greet(self, transport: SimulatedTransport) -> None:
        if not self._is_open:
            transport.refuse()
        elif not transport.is_closing():
            transport.attach(self._protocol_factory())

    def _detach(self, transport: SimulatedTransport) -> None:
        self._clients.pop(transport, None)
        self._wake_if_done()

    def _wake_if_done(self) -> None:
        if not self._is_open and not self._clients:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

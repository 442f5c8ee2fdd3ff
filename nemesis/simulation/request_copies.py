"""Requests that arrive once more: the bytes of one request, late, on a connection of its own.

On a real network a sender that gets no answer gives its connection up and sends the request again on another one; the
bytes on the old connection arrive when the network lets them. What the receiver sees is two requests of equal content
with any number of newer ones between them. That is what happens here, but that the sender was answered in time.
"""

from __future__ import annotations

from contextvars import Context
from typing import Final

from nemesis.simulation.links import Ending, Item, Pipe

PATIENCE_S: Final = 2.0
"""From the request to the end of its connection."""


class CopySender:
    """The end of the connection that sends one copy and reads no answer."""

    is_socket_closed = False

    def __init__(self, outbound: Pipe, inbound: Pipe) -> None:
        self.context = Context()
        self._outbound = outbound
        self._inbound = inbound
        inbound.receiver = self

    def send(self, request: bytes) -> None:
        self._outbound.send(request)

    def end(self) -> None:
        self._outbound.send(Ending.EOF)

    def receive(self, item: Item) -> None:
        """Drop the answer."""
        if not isinstance(item, Ending):
            self._inbound.arrived()

    def bounce(self) -> None:
        """The socket is never closed before the simulation ends."""

"""The proxy through which all bytes of a local cluster go, in a process of its own (``__main__``).

It listens at each node's advertised address and dials the node's direct port. Who calls is told by the caller's
source address, because every broker and client binds its own; anybody else is ``outside``. A process of its own,
so that forwarding and the workload do not take turns on one interpreter.

Control: one JSON object per line, one reply each, matched by order::

    {"op": "open", "routes": [{"node", "host", "port", "dial_port", "is_broker"}], "callers": {"<ip>": "<node>"}}
    {"op": "hold" | "release" | "counters" | "strand" | "astray", "links": [{"source", "target", "api_key"}]}
    {"op": "copy", "links": […], "after_ms": 0}
    {"op": "rejoin", "links": […], "is_abandoned_lost": false}

A reply is ``{"error": null | "<sentence>", "counters": [[forwarded, held, copies], ...], "astray": 0}``.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import msgspec

from nemesis.interfaces.links import Link
from nemesis.runtimes.local.flow import Flow
from nemesis.runtimes.local.link_table import LinkTable
from nemesis.support.frame_collector import api_key_of

OUTSIDE = "outside"
"""The name of every caller that has no address of this cluster."""

BACKLOG = 512
COPY_PATIENCE_S = 2.0
"""From a copy of a request to the end of its connection."""


class Route(msgspec.Struct, frozen=True):
    """A node, the address where it is advertised and the port where it really listens on the same host."""

    node: str
    host: str
    port: int
    dial_port: int
    is_broker: bool


class LinkName(msgspec.Struct, frozen=True):
    source: str
    target: str
    api_key: int | None = None

    def link(self) -> Link:
        return Link(self.source, self.target, self.api_key)


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of control; the module docstring says which operation uses what."""

    op: str
    routes: list[Route] = []
    callers: dict[str, str] = {}
    links: list[LinkName] = []
    after_ms: int = 0
    is_abandoned_lost: bool = False


class Reply(msgspec.Struct, frozen=True):
    error: str | None = None
    counters: list[tuple[int, int, int]] = []
    astray: int = 0


class Side(asyncio.Protocol):
    """One socket of a proxied connection: ``incoming`` is what it sends, ``outgoing`` what it receives."""

    def __init__(self, connection: Connection, *, is_caller: bool) -> None:
        self._connection = connection
        self._is_caller = is_caller
        self.incoming: Flow = connection.requests if is_caller else connection.replies
        self.outgoing: Flow = connection.replies if is_caller else connection.requests

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection.join(self, transport, is_caller=self._is_caller)

    def data_received(self, data: bytes) -> None:
        self.incoming.feed(data)

    def eof_received(self) -> bool:
        """A caller may half-close and wait for replies; a node that says no more is closed."""
        if self._is_caller:
            self.incoming.end()
        return self._is_caller

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.incoming.end()
        self.outgoing.lose_sink()

    def pause_writing(self) -> None:
        self.outgoing.set_congested(is_congested=True)

    def resume_writing(self) -> None:
        self.outgoing.set_congested(is_congested=False)


class Connection:
    """A caller's connection to a node: two flows and up to two sockets."""

    def __init__(self, proxy: Proxy, route: Route, caller: str, *, is_copy: bool = False) -> None:
        """``is_copy``: nobody calls; the connection carries one copy of a request, and its answer is dropped."""
        self._proxy = proxy
        self._route = route
        self._caller_socket: asyncio.Transport | None = None
        self._node_socket: asyncio.Transport | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._finished = 0
        self.requests = Flow(
            proxy.table,
            Link(caller, route.node),
            has_requests=route.is_broker,
            dial=self._dial,
            finish=self._finish_requests,
            copy=None if is_copy else self._copy_later,
        )
        self.replies = Flow(
            proxy.table,
            Link(route.node, caller),
            has_requests=False,
            dial=lambda: None,
            finish=self._finish_replies,
        )

    def join(self, side: Side, socket: asyncio.Transport, *, is_caller: bool) -> None:
        """One of the two sockets is connected."""
        if is_caller:
            self._caller_socket = socket
        else:
            self._node_socket = socket
        side.incoming.open_spring(socket)
        side.outgoing.open_sink(socket)
        if is_caller:
            self.requests.release()

    def send_copy(self, request: bytes) -> None:
        """Carry one request to the node, wait a moment and end."""
        self.replies.lose_sink()
        self.requests.feed(request)
        self.requests.release()
        asyncio.get_running_loop().call_later(COPY_PATIENCE_S, self.requests.end)

    def _copy_later(self, request: bytes) -> None:
        link, table = self.requests.link, self._proxy.table
        after_s = table.copies_after_s(link.source, link.target)[api_key_of(request)]
        table.count_under_way(link, 1)
        asyncio.get_running_loop().call_later(
            after_s, self._proxy.send_copy, self._route, link, request
        )

    def _dial(self) -> None:
        if self._dialling is None:
            self._dialling = asyncio.create_task(self._connect(), name=f"dial {self._route.node}")

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: Side(self, is_caller=False), self._route.host, self._route.dial_port
            )
        except OSError:
            self.replies.end()
            self.requests.lose_sink()

    def _finish_requests(self) -> None:
        """The caller has said everything: half-close, because the node may still owe replies."""
        if self._dialling is None and self._caller_socket is not None:
            self._caller_socket.close()  # given up while held, before it was ever made
            self._proxy.forget(self)
            return
        if self._node_socket is not None and not self._node_socket.is_closing():
            self._node_socket.write_eof()
        self._count_finished()

    def _finish_replies(self) -> None:
        """The node is gone and everything it said has been written: so is the caller's connection."""
        if self._caller_socket is not None:
            self._caller_socket.close()
        self._count_finished()

    def _count_finished(self) -> None:
        self._finished += 1
        if self._finished == 2:
            self._proxy.forget(self)


class Proxy:
    """All listening sockets, all connections, and the table of links."""

    def __init__(self) -> None:
        self.table = LinkTable()
        self._callers: dict[str, str] = {}
        self._servers: list[asyncio.Server] = []
        self._connections: dict[Connection, None] = {}

    async def execute(self, command: Command) -> Reply:
        """Do what a line of control asks; a mistake is told in the reply."""
        links = [name.link() for name in command.links]
        match command.op:
            case "open":
                return Reply(error=await self._open(command.routes, command.callers))
            case "hold":
                self.table.hold(links)
                return Reply()
            case "release":
                self.table.release(links)
                self._release({(link.source, link.target) for link in links})
                return Reply()
            case "counters":
                counted = [self.table.counters(link) for link in links]
                return Reply(
                    counters=[(c.forwarded_bytes, c.held_bytes, c.copies) for c in counted]
                )
            case "copy":
                self.table.copy(links, command.after_ms / 1000)
                for flow in self._request_flows(links):
                    flow.forget_partial_copy()
                return Reply()
            case "strand" | "rejoin":
                self._strand(links, command)
                return Reply()
            case "astray":
                return Reply(astray=self._astray(links))
            case _:
                return Reply(error=f"unknown operation {command.op!r}")

    def forget(self, connection: Connection) -> None:
        """Both directions of this connection have ended."""
        self._connections.pop(connection, None)

    async def _open(self, routes: list[Route], callers: dict[str, str]) -> str | None:
        self._callers.update(callers)
        loop = asyncio.get_running_loop()
        for route in routes:
            try:
                server = await loop.create_server(
                    partial(_Arrival, self, route),
                    route.host,
                    route.port,
                    backlog=BACKLOG,
                )
            except OSError as error:
                return f"{route.host}:{route.port} cannot be listened at: {error.strerror}"
            self._servers.append(server)
        return None

    def accept(self, route: Route, transport: asyncio.Transport) -> Side:
        """Name the caller of a new connection and give it its two flows."""
        host = transport.get_extra_info("peername")[0]
        connection = Connection(self, route, self._callers.get(host, OUTSIDE))
        self._connections[connection] = None
        return Side(connection, is_caller=True)

    def send_copy(self, route: Route, link: Link, request: bytes) -> None:
        """Send a request once more, on a connection that has no caller."""
        self.table.count_under_way(link, -1)
        self.table.count_copy(replace(link, api_key=api_key_of(request)))
        connection = Connection(self, route, link.source, is_copy=True)
        self._connections[connection] = None
        connection.send_copy(request)

    def _strand(self, links: list[Link], command: Command) -> None:
        for link in links:
            assert link.api_key is not None
            if command.op == "strand":
                self.table.arm(link)
            else:
                self.table.disarm(link)
            for flow in self._request_flows([link]):
                if command.op == "strand":
                    flow.strand(link.api_key)
                else:
                    flow.rejoin(link.api_key, is_abandoned_lost=command.is_abandoned_lost)

    def _astray(self, links: list[Link]) -> int:
        pairs = {(link.source, link.target) for link in links}
        under_way = sum(self.table.copies_under_way.get(pair, 0) for pair in pairs)
        return under_way + sum(flow.is_stranded for flow in self._request_flows(links))

    def _request_flows(self, links: list[Link]) -> list[Flow]:
        pairs = {(link.source, link.target) for link in links}
        flows = [connection.requests for connection in self._connections]
        return [flow for flow in flows if (flow.link.source, flow.link.target) in pairs]

    def _release(self, pairs: set[tuple[str, str]]) -> None:
        for connection in list(self._connections):
            for flow in (connection.requests, connection.replies):
                if (flow.link.source, flow.link.target) in pairs:
                    flow.release()


class _Arrival(asyncio.Protocol):
    """A connection whose caller is not known before it is made; it hands over to a ``Side`` at once."""

    def __init__(self, proxy: Proxy, route: Route) -> None:
        self._proxy = proxy
        self._route = route

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        side = self._proxy.accept(self._route, transport)
        transport.set_protocol(side)
        side.connection_made(transport)

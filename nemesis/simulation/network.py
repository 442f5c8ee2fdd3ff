"""The simulated network: hosts that belong to nodes, listeners that belong to lives, connections between them.

``loop.create_connection`` and ``create_server`` (hence asyncio's streams) come here. Who calls is told by the address
that the caller binds (``local_addr``), else by its incarnation; hosts that nobody registered are the harness's.
Dialling takes a latency each way; where nobody listens it is refused. Over a held link nothing is dialled before the
release, and a caller that gave up by then was never there. A paused process's port accepts, as the kernel's backlog
does.

When an incarnation ends, the kernel closes its sockets: what it sent is delivered, then the end of the stream, or a
reset if it left bytes unread. ``reset`` breaks connections from outside. A node's links to itself are never held.

When a machine loses its power (``power_off``), nobody is told anything: what it had not yet put on the wire is lost,
held bytes too; calls are not answered, and who writes to its old connections meets silence, and after ``power_on`` a
reset (see ``power``).

Single requests leave the order of their connection in two ways. A link copies requests of an API key
(``request_copies``), or strands the connections that exist at that time: each stops at its next such request, while
connections made after the first stop are free. A sender that gives up reconnects: newer requests overtake the old one.

Limits: connecting waits for as long as the link is held, and a backlog has no bound.
"""

from __future__ import annotations

import asyncio
import errno
from asyncio.events import AbstractServer
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from functools import partial
from random import Random
from typing import Any

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.simulation.incarnation import INCARNATION, Incarnation
from nemesis.simulation.links import Ending, Latency, LinkState, Pipe
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.power import Power
from nemesis.simulation.request_copies import PATIENCE_S, CopySender
from nemesis.simulation.server import SimulatedServer
from nemesis.simulation.transport import SimulatedTransport
from nemesis.support.frame_collector import api_key_of

HARNESS = "harness"
HARNESS_HOST = "127.0.0.1"
FIRST_EPHEMERAL_PORT = 40_000

Address = tuple[str, int]
ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class Network:
    """All hosts, links, listeners and connections of a simulation; it installs itself in the loop."""

    def __init__(self, loop: SimulationLoop, rng: Random, latency: Latency | None = None) -> None:
        self._loop = loop
        self._rng = rng
        self._latency = (latency or Latency()).sampler(rng)
        self._harness_latency = Latency().sampler(rng)
        self._nodes: dict[str, str] = {}
        self._kafka_hosts: set[str] = set()
        self._links: dict[tuple[str, str], LinkState] = {}
        self._power: dict[str, Power] = {}
        self._listeners: dict[Address, SimulatedServer] = {}
        self._transports: dict[SimulatedTransport, None] = {}
        self._sockets: dict[tuple[str, int], dict[SimulatedTransport, None]] = {}
        self._last_port = FIRST_EPHEMERAL_PORT
        loop.network = self

    # Hosts and links

    def register(self, host: str, node: str, *, speaks_kafka: bool = False) -> None:
        """Say which node a host belongs to, and whether requests to it are Kafka's (to hold or count by API key)."""
        self._nodes[host] = node
        if speaks_kafka:
            self._kafka_hosts.add(host)

    def hold(self, links: Iterable[Link]) -> None:
        """Keep all bytes on these directions until ``release``. Holding a held link changes nothing."""
        for link in _in_order(links):
            if link.source != link.target:
                self._link(link.source, link.target).hold(link.api_key)

    def release(self, links: Iterable[Link]) -> None:
        """Let the bytes flow again, the kept ones first. Releasing a free link changes nothing."""
        for link in _in_order(links):
            self._link(link.source, link.target).release(link.api_key)

    def is_held(self, link: Link) -> bool:
        """Whether the direction is held (for the API key, when the link names one)."""
        state = self._link(link.source, link.target)
        return state.is_held if link.api_key is None else link.api_key in state.held_keys

    def delay(self, links: Iterable[Link], seconds: float) -> None:
        """Let what is sent from now on take so much longer; 0 ends it."""
        for link in _in_order(links):
            self._link(link.source, link.target).delay_s = seconds

    def copy(self, links: Iterable[Link], seconds: float) -> None:
        """Let a copy of each request with the link's API key arrive so much later; 0 ends it."""
        for link in _in_order(links):
            assert link.api_key is not None
            state = self._link(link.source, link.target)
            if seconds:
                state.copies_after_s[link.api_key] = seconds
            else:
                state.copies_after_s.pop(link.api_key, None)
            for pipe in self._request_pipes(state):
                pipe.forget_partial_copy()

    def strand(self, links: Iterable[Link]) -> None:
        """Stop connections at their next request with the link's API key: those that exist now, and later ones until
        one has stopped.
        """
        for link in _in_order(links):
            assert link.api_key is not None
            state = self._link(link.source, link.target)
            state.armed_keys |= {link.api_key}
            for pipe in self._request_pipes(state):
                pipe.strand(link.api_key)

    def rejoin(self, links: Iterable[Link], *, is_abandoned_lost: bool) -> None:
        """Let the stranded connections go on."""
        for link in _in_order(links):
            assert link.api_key is not None
            self._link(link.source, link.target).rejoin(
                link.api_key, is_abandoned_lost=is_abandoned_lost
            )

    def astray(self, links: Iterable[Link]) -> int:
        """Return how many connections are stranded on these links, and copies under way."""
        pairs = {(link.source, link.target) for link in links}
        states = [self._link(*pair) for pair in pairs]
        return sum(len(state.stranded) + state.copies_under_way for state in states)

    def reset(self, links: Iterable[Link]) -> int:
        """Reset every connection that has a direction among these; returns how many ends were told."""
        ends = self.ends_between(links)
        for transport in ends:
            transport.inbound.drop_kept()
            transport.inbound.launch(Ending.RESET)
        return len(ends)

    def ends_between(self, links: Iterable[Link]) -> list[SimulatedTransport]:
        """Both ends, as far as they are open, of every connection that has a direction among these."""
        pairs = {(link.source, link.target) for link in links}

        def is_meant(transport: SimulatedTransport) -> bool:
            there, back = transport.outbound.link, transport.inbound.link
            return (there.source, there.target) in pairs or (back.source, back.target) in pairs

        return [transport for transport in self._transports if is_meant(transport)]

    def power_off(self, node: str) -> None:
        """Let the node's machine fall silent at once, with all that it was to send. The caller ends its incarnation."""
        self._power_of(node).off()
        for (owner, _), sockets in self._sockets.items():
            if owner == node:
                for transport in list(sockets):
                    transport.lose_power()
        for link in self._links.values():
            if link.source == node:
                for pipe in list(link.stopped):
                    pipe.drop_kept()

    def power_on(self, node: str) -> None:
        """Let its kernel answer again: with resets and refusals, until somebody listens."""
        self._power_of(node).on()

    def counters(self, links: Iterable[Link]) -> dict[Link, LinkCounters]:
        """What each link did so far, in bytes."""
        return {
            link: self._link(link.source, link.target).counters(link.api_key)
            for link in _in_order(links)
        }

    def close(self) -> None:
        """End every connection without a word: the simulation is over."""
        for transport in list(self._transports):
            transport.vanish()

    # What the loop asks

    async def connect(
        self, protocol_factory: ProtocolFactory, address: Address, local_address: Address | None
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to a listener. Raises ConnectionRefusedError when there is none."""
        host, port = local_address or (None, 0)
        attempt = Attempt(self, (_plain(host) or _own_host(), port or self.new_port()), address)
        attempt.dial()
        try:
            transport = await attempt.outcome
        except BaseException:
            attempt.give_up()
            raise
        protocol = protocol_factory()
        transport.attach(protocol)
        return transport, protocol

    async def listen(
        self, protocol_factory: ProtocolFactory, host: str | None, port: int
    ) -> AbstractServer:
        """Listen; port 0 means a free one. Raises OSError (EADDRINUSE) when the address is taken."""
        address = (_plain(host) or _own_host(), port or self.new_port())
        if address in self._listeners:
            raise OSError(
                errno.EADDRINUSE,
                f"error while attempting to bind on address {address!r}: address already in use",
            )
        server = SimulatedServer(
            self._loop, protocol_factory, address, self._listeners.pop, copy_context()
        )
        self._listeners[address] = server
        incarnation = INCARNATION.get()
        if incarnation is not None:
            incarnation.on_death(server.close_socket)
        return server

    # For attempts

    def new_port(self) -> int:
        """A port that nobody has."""
        self._last_port += 1
        return self._last_port

    def listener(self, address: Address) -> SimulatedServer | None:
        return self._listeners.get((_plain(address[0]) or HARNESS_HOST, address[1]))

    def power_at(self, host: str) -> Power:
        """The power of the machine that has this host."""
        return self._power_of(self._node_of(host))

    def link_between(self, source_host: str, target_host: str) -> LinkState:
        """The link from one host's node to another's."""
        return self._link(self._node_of(source_host), self._node_of(target_host))

    def latency_of(self, link: LinkState) -> Callable[[], float]:
        """What draws how long something takes on this link, in seconds.

        The harness is outside of the system: however slow the network is, it must not miss what it waits for.
        """
        is_outside = HARNESS in (link.source, link.target)
        return self._harness_latency if is_outside else self._latency

    def join(self, attempt: Attempt, server: SimulatedServer) -> SimulatedTransport:
        """Make both ends of a connection; returns the caller's."""
        caller, callee = attempt.local, attempt.remote
        there = self._pipe(
            caller[0],
            callee[0],
            has_requests=callee[0] in self._kafka_hosts,
            copy=partial(self._copy_later, caller[0], callee),
        )
        back = self._pipe(callee[0], caller[0], has_requests=False)
        accepted = self._transport(back, there, server.context, callee, caller)
        return_value = self._transport(there, back, attempt.context, caller, callee)
        server.accept(accepted)
        return return_value

    def _request_pipes(self, link: LinkState) -> list[Pipe]:
        """Return the pipes of open connections that carry requests over this link."""
        pipes = (transport.outbound for transport in self._transports)
        return [pipe for pipe in pipes if pipe.link is link and pipe.has_requests]

    def _copy_later(self, source_host: str, target: Address, link: LinkState, data: bytes) -> None:
        """Put a copy of a request on its way."""
        link.copies_under_way += 1
        after_s = link.copies_after_s[api_key_of(data)]
        arrive = partial(self._send_copy, source_host, target, link, data)
        self._loop.call_later(after_s, arrive, context=Context())

    def _send_copy(self, source_host: str, target: Address, link: LinkState, data: bytes) -> None:
        """Send a request on a connection of its own; it is lost when its receiver is down."""
        link.copies_under_way -= 1
        server = self.listener(target)
        if server is None or not self.power_at(target[0]).is_on:
            return
        source = (source_host, self.new_port())
        there = self._pipe(source_host, target[0], has_requests=True)
        back = self._pipe(target[0], source_host, has_requests=False)
        sender = CopySender(there, back)
        server.accept(self._transport(back, there, server.context, target, source))
        sender.send(data)
        link.count_copy(api_key_of(data))
        self._loop.call_later(PATIENCE_S, sender.end, context=Context())

    def _pipe(
        self,
        source_host: str,
        target_host: str,
        *,
        has_requests: bool,
        copy: Callable[[LinkState, bytes], None] | None = None,
    ) -> Pipe:
        link = self.link_between(source_host, target_host)
        latency = self.latency_of(link)
        pipe = Pipe(self._loop, link, latency, has_requests=has_requests, copy=copy)
        for key in sorted(link.armed_keys) if has_requests else ():
            pipe.strand(key)
        return pipe

    def _transport(
        self, outbound: Pipe, inbound: Pipe, context: Context, sockname: Address, peername: Address
    ) -> SimulatedTransport:
        transport = SimulatedTransport(
            self._loop,
            outbound=outbound,
            inbound=inbound,
            context=context,
            names={"sockname": sockname, "peername": peername},
            power=self.power_at(sockname[0]),
            on_closed=self._forget,
        )
        self._transports[transport] = None
        incarnation = context.get(INCARNATION)
        if incarnation is not None:
            self._sockets_of(incarnation)[transport] = None
        return transport

    def _forget(self, transport: SimulatedTransport) -> None:
        self._transports.pop(transport, None)
        incarnation = transport.context.get(INCARNATION)
        if incarnation is not None:
            self._sockets_of(incarnation).pop(transport, None)

    def _sockets_of(self, incarnation: Incarnation) -> dict[SimulatedTransport, None]:
        sockets = self._sockets.get((incarnation.node, incarnation.number))
        if sockets is None:
            sockets = self._sockets[incarnation.node, incarnation.number] = {}
            incarnation.on_death(lambda: _end_all(sockets))
        return sockets

    def _node_of(self, host: str) -> str:
        return self._nodes.get(host, HARNESS)

    def _power_of(self, node: str) -> Power:
        power = self._power.get(node)
        if power is None:
            power = self._power[node] = Power(self._loop, self._rng)
        return power

    def _link(self, source: str, target: str) -> LinkState:
        state = self._links.get((source, target))
        if state is None:
            state = self._links[source, target] = LinkState(source, target)
        return state


class Attempt:
    """A connection that is being made: a call, an answer, and whatever may come between."""

    def __init__(self, network: Network, local: Address, remote: Address) -> None:
        self._network = network
        self._loop = asyncio.get_running_loop()
        self.local = local
        self.remote = (_plain(remote[0]) or HARNESS_HOST, remote[1])
        self.context = copy_context()
        self._incarnation = INCARNATION.get()
        self.outcome: asyncio.Future[SimulatedTransport] = self._loop.create_future()
        self._transport: SimulatedTransport | None = None
        self._is_given_up = False

    def dial(self) -> None:
        """Call, or wait for the links to be free."""
        if self._is_over():
            return
        network = self._network
        for link in (
            network.link_between(self.local[0], self.remote[0]),
            network.link_between(self.remote[0], self.local[0]),
        ):
            if link.is_held:
                link.waiting[self.dial] = None
                return
        delay_s = self._latency_s() + self._delay_s()
        self._loop.call_later(delay_s, self._ring, context=Context())

    def give_up(self) -> None:
        """The caller wants it no more."""
        self._is_given_up = True
        if self._transport is not None:
            self._transport.end_socket()

    def _latency_s(self) -> float:
        network = self._network
        return network.latency_of(network.link_between(self.local[0], self.remote[0]))()

    def _delay_s(self) -> float:
        return self._network.link_between(self.local[0], self.remote[0]).delay_s

    def _is_over(self) -> bool:
        return self._is_given_up or (self._incarnation is not None and self._incarnation.is_dead)

    def _ring(self) -> None:
        """The call has arrived at the host."""
        if self._is_over():
            return
        network = self._network
        power = network.power_at(self.remote[0])
        if not power.is_on:
            power.call_again(self._ring)
            return
        answer_at = self._loop.time() + self._latency_s()
        server = network.listener(self.remote)
        if server is None:
            error = ConnectionRefusedError(
                errno.ECONNREFUSED, f"Connect call failed {self.remote!r}"
            )
            self._loop.call_at(answer_at, self._settle, error, context=self.context)
            return
        self._transport = network.join(self, server)
        self._transport.inbound.starts_after(answer_at)
        self._loop.call_at(answer_at, self._settle, None, context=self.context)

    def _settle(self, error: OSError | None) -> None:
        if self.outcome.done():
            return
        if error is not None:
            self.outcome.set_exception(error)
        else:
            assert self._transport is not None
            self.outcome.set_result(self._transport)


def _end_all(sockets: dict[SimulatedTransport, None]) -> None:
    for transport in list(sockets):
        transport.end_socket()


def _in_order(links: Iterable[Link]) -> list[Link]:
    def key(link: Link) -> tuple[Any, ...]:
        return link.source, link.target, -1 if link.api_key is None else link.api_key

    return sorted(links, key=key)


def _plain(host: str | None) -> str | None:
    return HARNESS_HOST if host == "localhost" else host


def _own_host() -> str:
    incarnation = INCARNATION.get()
    return HARNESS_HOST if incarnation is None else incarnation.host

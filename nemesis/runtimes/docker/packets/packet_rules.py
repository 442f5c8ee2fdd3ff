"""All that the Docker runtime does to packets: cuts, held requests, resets, bandwidth, and packet faults.

State has one owner: ``PacketRules`` remembers what is in force on every link, and a namespace's rules are always made
anew from that. So a container that starts again, in a new namespace, needs no more than ``reapply``; and what one
fault does to a link does not disturb what another one does.

What a cut means here: packets are lost, and TCP sends them again. Bytes that were under way arrive after the heal as
long as their sender still keeps the connection, a little late, because TCP has become patient meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nemesis.interfaces.errors import FaultLost, RuntimeFailure
from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.links import Link, LinkCounters
from nemesis.runtimes.docker.packets import bandwidth, chain, connections, rules
from nemesis.runtimes.docker.packets.handler_process import HandlerProcess
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError, NamespaceGone
from nemesis.runtimes.docker.packets.rules import Count, Counts, InForce, PacketNode, Role
from nemesis.runtimes.docker.packets.shaping import Tally
from nemesis.support.journal import Journal

T = TypeVar("T")
Tallies = Mapping[tuple[str, int], Tally]


class PacketRules:
    """All rules of one run. Every coroutine raises ``RuntimeFailure`` when a namespace cannot be ruled.

    Those that need the packet handler raise ``FaultLost`` once it is lost, after they have done the rest.
    """

    def __init__(
        self,
        nodes: Mapping[str, PacketNode],
        *,
        pid_of: Callable[[str], int],
        harness_host: str,
        features: frozenset[Feature],
        journal: Journal,
        log: Path,
        seed: int = 0,
    ) -> None:
        """``pid_of`` gives the process id of a running container; ``harness_host`` is an address that no rule names.

        ``features`` are what ``kernel.features`` has found; ``log`` is where the packet handler complains.
        """
        self._nodes = dict(nodes)
        self._pid_of = pid_of
        self._harness_host = harness_host
        self._in_force = InForce(is_key_matched=Feature.U32 in features)
        self._handler = HandlerProcess(journal=journal, log=log, seed=seed)
        self._namespaces: dict[str, Namespace] = {}
        self._handled: set[str] = set()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._rates_kbit_s: dict[str, int] = {}
        self._counted: defaultdict[tuple[Link, Role], Count] = defaultdict(Count)

    async def reapply(self, node: str) -> None:
        """Rule the namespace of a container that has just started, the first time or again.

        One that has died meanwhile needs no rules.
        """
        async with self._turns[node]:
            with suppress(NamespaceGone):
                await self._translated(node, self._install(node))

    async def add(self, node: str, packet_node: PacketNode) -> None:
        """Let there be one more node: what goes between it and the others is counted, and can be ruled."""
        self._nodes[node] = packet_node
        await asyncio.gather(*(self._install_rules(other) for other in sorted(self._namespaces)))

    async def cut(self, links: frozenset[Link]) -> None:
        """Drop all packets on these directions until ``restore``."""

        def change() -> None:
            self._in_force.cut |= links
            self._in_force.keys |= {link for link in links if link.api_key is not None}

        await self._change(links, change)

    async def restore(self, links: frozenset[Link]) -> None:
        """Let packets pass again."""
        await self._change(links, lambda: self._in_force.cut.difference_update(links))

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        """Let packets on these directions take so much longer; 0 ends it. The order stays."""
        delays = dict.fromkeys(links, delay_ms)
        await self._change(links, lambda: self._in_force.delays_ms.update(delays))

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        """Treat the packets on these directions so from now on; ``Impairment()`` ends it."""
        impairments = dict.fromkeys(links, impairment)
        await self._change(links, lambda: self._in_force.impairments.update(impairments))

    async def throttle(self, node: str, *, rate_kbit_s: int) -> None:
        """Let no more than this leave the node; 0 ends it."""
        self._rates_kbit_s[node] = rate_kbit_s
        if node in self._namespaces:
            limit = partial(bandwidth.limit, self._namespaces[node], self._nodes[node].host)
            with suppress(NamespaceGone):  # it is limited when it starts again
                await self._translated(node, limit(rate_kbit_s=rate_kbit_s))

    async def rate_kbit_s(self, node: str, *, expected_kbit_s: int) -> int:
        """Measure how fast data leaves the node, in kbit/s, by sending some; most exact near what is expected."""
        measure = partial(bandwidth.measure, self._namespaces[node], self._harness_host)
        return await self._translated(node, measure(rate_kbit_s=expected_kbit_s))

    async def connection_ends(self, links: frozenset[Link]) -> int:
        """Return how many ends of connections there are between these nodes in our namespaces."""
        return await self._at_ends_of(links, connections.count)

    async def reset(self, links: frozenset[Link]) -> int:
        """Reset the connections between these nodes; returns how many ends of them our kernels did end.

        At least one of each connection: the other one may have heard of it first.
        """
        return await self._at_ends_of(links, connections.reset)

    async def _at_ends_of(
        self,
        links: frozenset[Link],
        act: Callable[[Namespace, Sequence[str]], Coroutine[Any, Any, int]],
    ) -> int:
        """Do it in the namespace of every node that has an end of these links; returns the sum."""
        peers: defaultdict[str, set[str]] = defaultdict(set)
        for link in links:
            for node, peer in ((link.source, link.target), (link.target, link.source)):
                if node in self._namespaces:
                    peers[node].add(self._nodes[peer].host)
        ends = await asyncio.gather(
            *(
                self._translated(node, act(self._namespaces[node], sorted(hosts)))
                for node, hosts in sorted(peers.items())
            )
        )
        return sum(ends)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        """Return what passed and what was dropped on each link since the start, with headers, in bytes.

        What is dropped is sent again and counts again. A link with an API key counts from when it was first cut.
        """
        counted, tallies = await self._counts(links), await self._handler.tallies()
        return {link: self._link_counters(link, counted, tallies) for link in links}

    async def packet_counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]:
        """Return what happened to the packets of each link since the start.

        A packet is what the kernel handles as one: between containers several segments may be in it.
        """
        counted, tallies = await self._counts(links), await self._handler.tallies()
        return {link: self._packet_counters(link, counted, tallies) for link in links}

    async def clear(self) -> None:
        """End every fault, take all rules out, and let the namespaces go; verified. Idempotent."""
        try:
            for node in list(self._namespaces):
                namespace = self._namespaces.pop(node)
                try:
                    await self._translated(node, _clear(namespace))
                finally:
                    namespace.close()
        finally:
            await self._handler.stop()
            self._handled.clear()

    async def _change(self, links: frozenset[Link], change: Callable[[], None]) -> None:
        """Change what is in force, and make the rules of every namespace that these links concern anew."""
        nodes = {self._node_of(link) for link in links}
        is_handled = self._is_handled(links)
        change()
        results = await asyncio.gather(
            *(self._install_rules(node) for node in sorted(nodes) if node in self._namespaces),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if is_handled or self._is_handled(links):
            try:
                await self._handler.confirm()
            except FaultLost:
                await self._do_without_handler()
                raise

    async def _do_without_handler(self) -> None:
        """Let no rule send packets to a handler that is lost: nobody may ever heal that partition."""
        self._in_force.is_handled = False
        await asyncio.gather(*(self._install_rules(node) for node in sorted(self._namespaces)))

    def _is_handled(self, links: Iterable[Link]) -> bool:
        """Whether any of these links is in the packet handler's hands."""
        return any(self._in_force.shape(replace(link, api_key=None)) for link in links)

    def _node_of(self, link: Link) -> str:
        try:
            return rules.node_and_chain_of(link, self._nodes)[0]
        except (KeyError, ValueError) as error:
            raise RuntimeFailure(f"there is no rule for the link {link}: {error}") from None

    async def _install_rules(self, node: str) -> None:
        async with self._turns[node]:
            await self._translated(node, self._replace(node))

    async def _replace(self, node: str) -> None:
        await self._tell_handler(node)
        lines = rules.rules_at(node, self._nodes, self._in_force)
        self._add(await chain.replace(self._namespaces[node], lines))

    async def _install(self, node: str) -> None:
        new = Namespace(self._pid_of(node))
        if (old := self._namespaces.pop(node, None)) is not None:
            self._add(await chain.read(old))
            old.close()
        self._namespaces[node] = new
        self._handled.discard(node)
        await self._tell_handler(node)
        await chain.install(new, rules.rules_at(node, self._nodes, self._in_force))
        if rate_kbit_s := self._rates_kbit_s.get(node):
            await bandwidth.limit(new, self._nodes[node].host, rate_kbit_s=rate_kbit_s)

    async def _tell_handler(self, node: str) -> None:
        """Let the packet handler know before a rule sends it packets; without it there are no such rules."""
        queues = rules.queues_at(node, self._nodes, self._in_force)
        if queues:
            with suppress(FaultLost):
                await self._handler.start()
                if node not in self._handled:
                    await self._handler.open(node, self._namespaces[node].path)
                    self._handled.add(node)
                await self._handler.shape(node, queues)
        self._in_force.is_handled = not self._handler.is_lost

    def _add(self, counted: Mapping[tuple[Link, Role], Count]) -> None:
        for label, count in counted.items():
            self._counted[label] += count

    async def _counts(self, links: frozenset[Link]) -> Counts:
        """Return what the rules of these links have counted, those before them included."""
        nodes = sorted({self._node_of(link) for link in links})
        counted = await asyncio.gather(*map(self._counts_at, nodes))
        return defaultdict(
            Count, {label: count for per_node in counted for label, count in per_node.items()}
        )

    async def _counts_at(self, node: str) -> Counts:
        async with self._turns[node]:
            namespace = self._namespaces.get(node)
            now = {} if namespace is None else await self._translated(node, chain.read(namespace))
            before = {
                label: n for label, n in self._counted.items() if self._node_of(label[0]) == node
            }
            return {
                label: before.get(label, Count()) + now.get(label, Count())
                for label in {**before, **now}
            }

    def _link_counters(self, link: Link, counted: Counts, tallies: Tallies) -> LinkCounters:
        forwarded = counted[link, Role.FORWARDED].bytes
        held = counted[link, Role.HELD].bytes
        if link.api_key is not None and not self._in_force.is_key_matched:
            tally = self._tally(replace(link, api_key=None), tallies)
            forwarded = tally.passed_bytes.get(link.api_key, 0)
            held = tally.dropped_bytes.get(link.api_key, 0)
        return LinkCounters(forwarded_bytes=forwarded, held_bytes=held)

    def _packet_counters(self, link: Link, counted: Counts, tallies: Tallies) -> PacketCounters:
        tally = self._tally(link, tallies)
        return PacketCounters(
            forwarded=counted[link, Role.FORWARDED].packets,
            lost=counted[link, Role.LOST].packets,
            delayed=tally.delayed,
            duplicated=tally.duplicated,
            reordered=tally.reordered,
        )

    def _tally(self, link: Link, tallies: Tallies) -> Tally:
        return tallies.get((self._node_of(link), rules.queue_of(link, self._nodes)), Tally())

    async def _translated(self, node: str, work: Awaitable[T]) -> T:
        try:
            return await work
        except NamespaceGone:
            raise
        except (NamespaceError, OSError) as error:
            raise RuntimeFailure(f"the network of {node} cannot be ruled: {error}") from None


async def _clear(namespace: Namespace) -> None:
    await chain.remove(namespace)
    await bandwidth.remove(namespace)

"""What clusters of real processes share, on this machine or in containers: names, addresses, probes of nodes.

``RealCluster`` knows which nodes exist and where they listen. A runtime gives it the addresses when it has them: names
count before the start, addresses do not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, Protocol, Self, TypeVar

from nemesis.interfaces.errors import NodeExited, RuntimeFailure
from nemesis.interfaces.links import Address
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.membership import Membership
from nemesis.runtimes.probes import probe_broker, probe_zookeeper
from nemesis.support.node_names import BROKER, CONTROLLER, is_controller
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec

NO_ZOOKEEPER: Final = Unsupported("the cluster runs with KRaft and has no ZooKeeper")

POLL_INTERVAL_S = 0.05
PROBE_TIMEOUT_S = 1.0
MOST_STARTS: Final = 5
"""Of a broker that may exit while it starts: a fault ends one session, or a few of them in a row."""


class Addresses(Protocol):
    """Where the nodes of a cluster are."""

    @property
    def brokers(self) -> Sequence[str]: ...
    @property
    def zookeepers(self) -> Sequence[str]: ...
    @property
    def controllers(self) -> Sequence[str]: ...
    @property
    def clients(self) -> Sequence[str]: ...

    def host(self, node: str) -> str:
        """Return the address of any node or client; raises KeyError for an unknown name."""

    def with_broker(self) -> Self:
        """Return the same nodes, at the same addresses, and one more broker; raises ``UsageError``."""


A = TypeVar("A", bound=Addresses)


class RealCluster(Generic[A]):
    """The names of a cluster's nodes, and their addresses from the start on. Implements ``SeparateControllers``."""

    def __init__(self, names: A, *, broker_limit: int) -> None:
        """Take names from ``names``; its addresses serve only to try the configuration."""
        self.names = names
        """Every node that ever was; brokers that have left are there, too."""
        self.membership = Membership(len(names.brokers), limit=broker_limit)
        self._addresses: A | None = None

    @property
    def codec(self) -> Codec:
        """Kafka's wire format."""
        return wire_format

    @property
    def brokers(self) -> list[str]:
        return self.membership.present

    @property
    def zookeepers(self) -> list[str]:
        return list(self.names.zookeepers)

    @property
    def controllers(self) -> list[str]:
        """The KRaft controllers that are nodes of their own."""
        return list(self.names.controllers)

    @property
    def clients(self) -> list[str]:
        return list(self.names.clients)

    def broker_with(self, node: str) -> str | None:
        """Return the broker on whose node the KRaft controller of this name is; None for any other name."""
        if not is_controller(node) or self.controllers:
            return None
        return f"{BROKER}{node.removeprefix(CONTROLLER)}"

    def client_host(self, client: str) -> str:
        if client not in self.names.clients:
            raise RuntimeFailure(f"there is no client {client!r}")
        return self.addresses.host(client)

    @property
    def addresses(self) -> A:
        """The addresses of a cluster that was started; raises ``RuntimeFailure`` before that."""
        if self._addresses is None:
            raise RuntimeFailure("the cluster has no addresses before its start")
        return self._addresses

    @addresses.setter
    def addresses(self, addresses: A) -> None:
        self._addresses = addresses

    def add_broker(self, node: str) -> A:
        """Give ``node``, the next broker, an address; return all addresses. Raises ``RuntimeFailure``."""
        addresses = self.addresses
        self.membership.admit(node)
        self.names = self.names.with_broker()
        self.addresses = addresses.with_broker()
        return self.addresses

    def known(self, node: str) -> str:
        """Return the name of a broker, controller or ZooKeeper server; raises ``RuntimeFailure`` for any other."""
        names = self.names
        if node not in (*names.brokers, *names.controllers, *names.zookeepers):
            raise RuntimeFailure(f"there is no node {node!r}")
        return node

    async def ask(
        self,
        node: str,
        address: Address,
        *,
        timeout_s: float,
        source_host: str | None = None,
        caller: socket.socket | None = None,
    ) -> bool:
        """Return whether the node answers at this address in time."""
        probe = probe_zookeeper if node in self.names.zookeepers else probe_broker
        return await probe(address, timeout_s=timeout_s, source_host=source_host, caller=caller)


async def until_it_answers(
    ask: Callable[[float], Awaitable[bool]],
    raise_if_dead: Callable[[], Awaitable[None]],
    *,
    timeout_s: float,
) -> bool:
    """Ask a node that starts until it answers; False at the deadline. ``ask`` takes a time-out in seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not await ask(PROBE_TIMEOUT_S):
        await raise_if_dead()
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_INTERVAL_S)
    return True


async def started(
    start: Callable[[], Awaitable[int]],
    until_it_answers: Callable[[], Awaitable[bool]],
    *,
    may_exit: bool,
) -> dict[str, object]:
    """Start a node, up to ``MOST_STARTS`` times if it may exit while it starts, as a supervisor would.

    Returns its ``pid``, whether it ``answered``, and the number of ``starts``; raises ``NodeExited``.
    """
    most = MOST_STARTS if may_exit else 1
    for number in range(1, most + 1):
        try:
            pid = await start()
            answered = await until_it_answers()
            break
        except NodeExited:
            if number == most:
                raise
    return {"pid": pid, "answered": answered, "starts": number}

"""Addresses of a local cluster: a leased 127.x.y.0/24, one address per node.

Every machine owns the whole of 127.0.0.0/8, so each run takes a /24 for itself and runs never meet. A lease is a
file, made with ``O_EXCL`` and named after the network; the run's journal lists it, so ``nemesis clean`` returns
the lease of a dead harness. In the /24: brokers from .1, ZooKeeper or KRaft's controllers from .51, clients from
.101. A node is advertised at Kafka's and ZooKeeper's own ports, where the proxy listens; it really listens at the port
plus 10000.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from nemesis.interfaces.links import Address
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import Journal, runtime_directory
from nemesis.support.node_names import node_names
from nemesis.targets.base import control_plane

BROKER_PORT = 9092
ZOOKEEPER_PORT = 2181
CONTROLLER_PORT = 9093
DIRECT_PORT_OFFSET = 10_000

FIRST_HOST = {"broker": 1, "zookeeper": 51, "controller": 51, "client": 101}
"""A cluster has ZooKeeper or KRaft's controllers."""
HOSTS_PER_ROLE = {"broker": 50, "zookeeper": 50, "controller": 50, "client": 150}

NETWORKS = 254 * 256
"""127.1.0 to 127.254.255: the ends are left to the machine's own uses (127.0.0.1, 127.0.1.1)."""

BUSY_LIMIT = 16
"""So many networks with an occupied port in a row mean that somebody listens on every address."""


class AddressPlan:
    """Which node has which address in one network, such as ``127.4.9``."""

    def __init__(
        self, network: str, *, brokers: int, zookeepers: int, clients: int, controllers: int = 0
    ) -> None:
        """Raises ``UsageError`` when a count is not positive or does not fit into the network.

        ``zookeepers`` may be 0. ``controllers``: of KRaft, apart from the brokers.
        """
        self.network = network
        self.brokers = node_names("broker", brokers, limit=HOSTS_PER_ROLE["broker"])
        self.zookeepers = _names_or_none("zookeeper", zookeepers)
        self.controllers = _names_or_none("controller", controllers)
        self.clients = node_names("client", clients, limit=HOSTS_PER_ROLE["client"])
        self._hosts = {
            node: f"{network}.{FIRST_HOST[role] + index}"
            for role, nodes in self._by_role()
            for index, node in enumerate(nodes)
        }

    def with_broker(self) -> AddressPlan:
        """Return the plan of the same nodes, at the same addresses, and one more broker; raises ``UsageError``."""
        return AddressPlan(
            self.network,
            brokers=len(self.brokers) + 1,
            zookeepers=len(self.zookeepers),
            clients=len(self.clients),
            controllers=len(self.controllers),
        )

    def host(self, node: str) -> str:
        """Return the address of any node or client; raises KeyError for an unknown name."""
        return self._hosts[node]

    def advertised(self, node: str) -> Address:
        """Return where the cluster and its clients find a broker, controller or ZooKeeper node: the proxy."""
        if node in self.controllers:
            return Address(self._hosts[node], CONTROLLER_PORT)
        port = BROKER_PORT if node in self.brokers else ZOOKEEPER_PORT
        return Address(self._hosts[node], port)

    def direct(self, node: str) -> Address:
        """Return where the node itself listens."""
        advertised = self.advertised(node)
        return Address(advertised.host, advertised.port + DIRECT_PORT_OFFSET)

    def callers(self) -> dict[str, str]:
        """Return the name behind each source address."""
        return {host: node for node, host in self._hosts.items()}

    def routes(self, node: str) -> list[tuple[Address, Address]]:
        """Return where the node is advertised and, for each, where it listens: a broker may listen to its controller
        apart."""
        routes = [(self.advertised(node), self.direct(node))]
        if node in self.brokers:
            routes += [(control_plane(there), control_plane(local)) for there, local in routes]
        return routes

    def listening(self) -> list[Address]:
        """Return every address that this plan needs to be free."""
        nodes = [*self.brokers, *self.controllers, *self.zookeepers]
        return [address for node in nodes for route in self.routes(node) for address in route]

    def _by_role(self) -> Iterator[tuple[str, list[str]]]:
        yield "broker", self.brokers
        yield "zookeeper", self.zookeepers
        yield "controller", self.controllers
        yield "client", self.clients


def _names_or_none(role: str, count: int) -> list[str]:
    return node_names(role, count, limit=HOSTS_PER_ROLE[role]) if count else []


class Lease:
    """The right to use one network until ``release``."""

    def __init__(self, path: Path, plan: AddressPlan, journal: Journal) -> None:
        self.path = path
        self.plan = plan
        self._journal = journal

    def release(self) -> None:
        """Give the network back. Idempotent."""
        self.path.unlink(missing_ok=True)
        self._journal.remove_lease(self.path)


def take_lease(
    journal: Journal,
    *,
    brokers: int,
    zookeepers: int,
    clients: int,
    controllers: int = 0,
    directory: Path | None = None,
) -> Lease:
    """Lease the first network that nobody has and whose ports are free.

    Raises ``MissingRequirement`` naming the address when the ports are taken everywhere, ``UsageError`` for counts
    that do not fit.
    """
    folder = runtime_directory(directory) / "leases"
    folder.mkdir(exist_ok=True)
    busy: Address | None = None
    busy_networks = 0
    for network in _networks(os.getpid()):
        plan = AddressPlan(
            network,
            brokers=brokers,
            zookeepers=zookeepers,
            clients=clients,
            controllers=controllers,
        )
        path = folder / network
        if path.exists():
            continue
        journal.add_lease(path)
        if not _claim(path, journal.name):
            journal.remove_lease(path)
            continue
        lease = Lease(path, plan, journal)
        busy = first_busy(plan.listening())
        if busy is None:
            return lease
        lease.release()
        busy_networks += 1
        if busy_networks == BUSY_LIMIT:
            break
    if busy is None:
        raise MissingRequirement(
            f"every network in {folder} is leased: `nemesis clean` returns the leases of dead runs"
        )
    raise MissingRequirement(
        f"port {busy.port} is in use on {busy.host} and on every other address tried: "
        f"stop the program that listens on it (`ss -ltnp 'sport = :{busy.port}'` names it)"
    )


def first_busy(addresses: list[Address]) -> Address | None:
    """Return the first address at which a listener cannot be opened, else None."""
    for address in addresses:
        with socket.socket() as probe:
            # As asyncio's servers do: connections of an earlier run in TIME_WAIT are no obstacle.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address.host, address.port))
                probe.listen(1)
            except OSError:
                return address
    return None


def _networks(start: int) -> Iterator[str]:
    """All networks, begun at a place that differs between harnesses started together."""
    for step in range(NETWORKS):
        x, y = divmod((start + step) % NETWORKS, 256)
        yield f"127.{x + 1}.{y}"


def _claim(path: Path, owner: str) -> bool:
    try:
        with path.open("x") as lease:
            lease.write(owner)
    except FileExistsError:
        return False
    except OSError as error:
        raise MissingRequirement(f"the lease {path} cannot be written: {error.strerror}") from None
    return True

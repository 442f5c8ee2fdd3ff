"""Addresses of a cluster in containers: one /24 of its own, one address per node.

``.1`` is the bridge's device on the host and the harness's own way, in no rule. ZooKeeper's members, or KRaft's
controllers, are ``.11`` and following, brokers ``.21`` and following, clients ``.101`` and following: these the harness
adds to the device, so that each has a source address of its own.

The subnets are those of 198.18.0.0/15, which RFC 2544 sets aside for test networks: nobody's machine is there. The
engine refuses a subnet that one of its networks has, which settles it between runs that start together; one that the
host has a route into is not tried.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from nemesis.interfaces.links import Address
from nemesis.support.node_names import node_names

BROKER_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
ZOOKEEPER_PORT: Final = 2181

TEST_NETWORKS: Final = IPv4Network("198.18.0.0/15")
GATEWAY: Final = 1
FIRST_HOST: Final = {"zookeeper": 11, "controller": 11, "broker": 21, "client": 101}
"""A cluster has ZooKeeper or KRaft's controllers."""
HOSTS_PER_ROLE: Final = {"zookeeper": 7, "controller": 7, "broker": 80, "client": 150}
ROUTES: Final = Path("/proc/net/route")


class DockerAddresses:
    """Which node has which address in one subnet."""

    def __init__(
        self,
        subnet: IPv4Network,
        *,
        brokers: int,
        zookeepers: int,
        clients: int,
        controllers: int = 0,
    ) -> None:
        """Raises ``UsageError`` when a count is not positive or does not fit. ``zookeepers`` may be 0.

        ``controllers``: of KRaft, apart from the brokers.
        """
        self.subnet = subnet
        self.brokers = node_names("broker", brokers, limit=HOSTS_PER_ROLE["broker"])
        self.zookeepers = _names_or_none("zookeeper", zookeepers)
        self.controllers = _names_or_none("controller", controllers)
        self.clients = node_names("client", clients, limit=HOSTS_PER_ROLE["client"])
        self.gateway = str(subnet[GATEWAY])
        self._hosts = {
            node: str(subnet[FIRST_HOST[role] + index])
            for role, nodes in (
                ("zookeeper", self.zookeepers),
                ("controller", self.controllers),
                ("broker", self.brokers),
                ("client", self.clients),
            )
            for index, node in enumerate(nodes)
        }

    def within(self, subnet: IPv4Network) -> DockerAddresses:
        """Return the same nodes in another subnet."""
        return DockerAddresses(
            subnet,
            brokers=len(self.brokers),
            zookeepers=len(self.zookeepers),
            clients=len(self.clients),
            controllers=len(self.controllers),
        )

    def with_broker(self) -> DockerAddresses:
        """Return the same nodes, at the same addresses, and one more broker; raises ``UsageError``."""
        return DockerAddresses(
            self.subnet,
            brokers=len(self.brokers) + 1,
            zookeepers=len(self.zookeepers),
            clients=len(self.clients),
            controllers=len(self.controllers),
        )

    @property
    def hosts(self) -> dict[str, str]:
        """The address of every node and client."""
        return dict(self._hosts)

    def host(self, node: str) -> str:
        """Return the address of any node or client; raises KeyError for an unknown name."""
        return self._hosts[node]

    def address(self, node: str) -> Address:
        """Return where a broker, controller or ZooKeeper node listens."""
        if node in self.controllers:
            return Address(self._hosts[node], CONTROLLER_PORT)
        port = BROKER_PORT if node in self.brokers else ZOOKEEPER_PORT
        return Address(self._hosts[node], port)

    def zookeeper_connect(self, *, first: int = 0) -> str:
        """Return the connect string of the ensemble, begun at some member; empty without an ensemble."""
        start = first % max(1, len(self.zookeepers))
        members = self.zookeepers[start:] + self.zookeepers[:start]
        return ",".join(str(self.address(member)) for member in members)


def _names_or_none(role: str, count: int) -> list[str]:
    return node_names(role, count, limit=HOSTS_PER_ROLE[role]) if count else []


def candidates() -> Iterator[IPv4Network]:
    """Yield subnets that the host has no route into, begun at a place that differs between harnesses."""
    taken = routes()
    subnets = list(TEST_NETWORKS.subnets(new_prefix=24))
    start = os.getpid() % len(subnets)
    for subnet in subnets[start:] + subnets[:start]:
        if not any(subnet.overlaps(network) for network in taken):
            yield subnet


def routes(table: Path = ROUTES) -> list[IPv4Network]:
    """Return the networks of the host's routing table, but for the default route; none when there is no such table."""
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return []
    fields = [line.split() for line in lines]
    named = [(_address(line[1]), _address(line[7])) for line in fields if len(line) > 7]
    return [
        IPv4Network((address, str(mask)), strict=False) for address, mask in named if int(mask) != 0
    ]


def _address(text: str) -> IPv4Address:
    """Parse the kernel's way to write an address: hexadecimal, in the machine's byte order."""
    return IPv4Address(int.from_bytes(bytes.fromhex(text), sys.byteorder))

"""Made-up addresses: brokers live on 10.0.1.N, ZooKeeper on 10.0.2.N, clients on 10.0.3.N, the harness on 10.0.0.1."""

from __future__ import annotations

from nemesis.interfaces.links import Address

HARNESS_HOST = "10.0.0.1"
BROKER_PORT = 9092
ZOOKEEPER_PORT = 2181
MAX_BROKERS = 254

_NETWORKS = {"broker": 1, "zookeeper": 2, "client": 3}
_PORTS = {"broker": BROKER_PORT, "zookeeper": ZOOKEEPER_PORT}


def names(role: str, count: int) -> list[str]:
    """Return ``role-1`` to ``role-COUNT``."""
    return [f"{role}-{number}" for number in range(1, count + 1)]


def host_of(node: str) -> str:
    """Return the host of a node called ``broker-N``, ``zookeeper-N`` or ``client-N``."""
    role, number = node.rsplit("-", 1)
    return f"10.0.{_NETWORKS[role]}.{number}"


def address_of(node: str) -> Address:
    """Return where a broker or a ZooKeeper server listens."""
    return Address(host_of(node), _PORTS[node.rsplit("-", 1)[0]])

"""Which nodes belong to a cluster, and how to reach them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from nemesis.interfaces.links import Address
from nemesis.workloads.kafka.codec import Codec


class Cluster(Protocol):
    """The names and addresses of a cluster's nodes. Methods raise ``RuntimeFailure`` for unknown names."""

    @property
    def codec(self) -> Codec:
        """Writes requests to these brokers and reads their responses."""

    @property
    def brokers(self) -> list[str]:
        """The brokers that belong to the cluster now, dead or alive: ``broker-N``, where N is the broker id."""

    @property
    def zookeepers(self) -> list[str]:
        """The ZooKeeper servers: ``zookeeper-N``; none in a cluster with KRaft controllers."""

    @property
    def clients(self) -> list[str]:
        """The client nodes: ``client-1`` to ``client-N``."""

    def client_host(self, client: str) -> str:
        """Return the source address that this client binds."""

    def address(self, node: str) -> Address:
        """Return the advertised address of a broker or ZooKeeper server (through the links)."""

    def direct_address(self, node: str) -> Address:
        """Return the address of a broker or ZooKeeper server past every link rule, for the harness's own probes.

        ``controller-N`` is a KRaft controller: a node of its own, or the one on the node ``broker-N``.
        """

    def direct_source(self, node: str) -> str:
        """Return the address to bind when calling ``direct_address``, so that no rule applies."""


@runtime_checkable
class SeparateControllers(Protocol):
    """A cluster that may have KRaft controllers which are not brokers."""

    @property
    def controllers(self) -> list[str]:
        """Such controllers: ``controller-N``. None where ZooKeeper or the brokers themselves keep the metadata."""


def controllers_of(cluster: Cluster) -> list[str]:
    """Return the KRaft controllers that are nodes of their own."""
    return cluster.controllers if isinstance(cluster, SeparateControllers) else []


def voters_of(cluster: Cluster) -> list[str]:
    """Return the voters of a KRaft quorum: its controllers, or all brokers."""
    return controllers_of(cluster) or cluster.brokers


def bootstrap(cluster: Cluster) -> list[Address]:
    """Return the brokers' advertised addresses."""
    return [cluster.address(broker) for broker in cluster.brokers]

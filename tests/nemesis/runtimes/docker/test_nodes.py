"""Which nodes a cluster of containers has, and where they are found, before any container exists."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from nemesis.interfaces.cluster import controllers_of, voters_of
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Address
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.docker.nodes import DockerNodes, require_containers
from nemesis.support.errors import UsageError

SUBNET = IPv4Network("198.18.7.0/24")


def config(tmp_path: Path, target: str, **options: str) -> ClusterConfig:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return ClusterConfig(
        broker_count=3, client_count=1, run_directory=tmp_path, target=target, target_options=named
    )


def nodes_of(asked: ClusterConfig) -> DockerNodes:
    require_containers(asked)
    nodes = DockerNodes(asked, has_disks=False)
    nodes.addresses = nodes.names.within(SUBNET)
    return nodes


def test_kafka_with_zookeeper_has_an_ensemble(tmp_path: Path) -> None:
    nodes = nodes_of(config(tmp_path, "kafka", kafka_version="3.9.1"))
    assert len(nodes.zookeepers) == 3
    assert nodes.zookeeper_connect().count(":2181") == 3


def test_a_kraft_cluster_has_no_ensemble_and_its_controllers_are_found_beside_the_brokers(
    tmp_path: Path,
) -> None:
    nodes = nodes_of(config(tmp_path, "kafka", kafka_version="4.1.1"))
    assert nodes.zookeepers == []
    assert nodes.direct_address("broker-2") == Address("198.18.7.22", 9092)
    assert nodes.direct_address("controller-2") == Address("198.18.7.22", 9093)
    with pytest.raises(RuntimeFailure, match="node 'broker-7'"):
        nodes.direct_address("controller-7")


def test_controllers_of_their_own_are_nodes_and_their_brokers_are_no_controllers(
    tmp_path: Path,
) -> None:
    nodes = nodes_of(config(tmp_path, "kafka", kafka_version="4.1.1", controllers="3"))
    assert controllers_of(nodes) == ["controller-1", "controller-2", "controller-3"]
    assert voters_of(nodes) == controllers_of(nodes)
    assert nodes.direct_address("controller-2") == Address("198.18.7.12", 9093)
    ports = {node: rule.port for node, rule in nodes.packet_nodes(nodes.addresses).items()}
    assert (ports["broker-1"], ports["controller-1"], ports["client-1"]) == (9092, 9093, None)


def test_a_mixed_cluster_runs_on_this_machine_only(tmp_path: Path) -> None:
    asked = config(tmp_path, "mixed", reference="1")
    with pytest.raises(UsageError, match="runs on this machine only"):
        require_containers(asked)

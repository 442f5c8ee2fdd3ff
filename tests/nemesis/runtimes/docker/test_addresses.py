"""Every node has an address of its own; a subnet that the host has a route into is not tried."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path

import pytest

from nemesis.interfaces.links import Address
from nemesis.runtimes.docker import addresses
from nemesis.runtimes.docker.addresses import DockerAddresses, candidates, routes
from nemesis.support.errors import UsageError

SUBNET = IPv4Network("198.18.7.0/24")
HEADER = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
DEFAULT = "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
LAN = "eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
TUNNEL = "tun0\t000012C6\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"


def test_each_node_has_an_address_of_its_own() -> None:
    plan = DockerAddresses(SUBNET, brokers=2, zookeepers=3, clients=2)
    assert plan.gateway == "198.18.7.1"
    assert plan.hosts == {
        "zookeeper-1": "198.18.7.11",
        "zookeeper-2": "198.18.7.12",
        "zookeeper-3": "198.18.7.13",
        "broker-1": "198.18.7.21",
        "broker-2": "198.18.7.22",
        "client-1": "198.18.7.101",
        "client-2": "198.18.7.102",
    }
    assert plan.address("broker-2") == Address("198.18.7.22", 9092)
    assert plan.address("zookeeper-2") == Address("198.18.7.12", 2181)


def test_the_widest_cluster_has_no_address_twice() -> None:
    widest = DockerAddresses(SUBNET, brokers=80, zookeepers=7, clients=150)
    hosts = [*widest.hosts.values(), widest.gateway]
    assert len(hosts) == len(set(hosts))
    assert "198.18.7.255" not in hosts


def test_each_broker_may_begin_at_another_member() -> None:
    plan = DockerAddresses(SUBNET, brokers=1, zookeepers=3, clients=1)
    first, second = plan.zookeeper_connect(), plan.zookeeper_connect(first=4)
    assert first == "198.18.7.11:2181,198.18.7.12:2181,198.18.7.13:2181"
    assert second == "198.18.7.12:2181,198.18.7.13:2181,198.18.7.11:2181"


def test_a_cluster_may_have_no_ensemble() -> None:
    plan = DockerAddresses(SUBNET, brokers=1, zookeepers=0, clients=1)
    assert list(plan.hosts) == ["broker-1", "client-1"]
    assert plan.zookeeper_connect() == plan.zookeeper_connect(first=2) == ""
    assert plan.within(SUBNET).hosts == plan.hosts


def test_controllers_of_a_quorum_have_addresses_where_zookeeper_would_have() -> None:
    plan = DockerAddresses(SUBNET, brokers=1, zookeepers=0, clients=1, controllers=2)
    assert plan.address("controller-2") == Address("198.18.7.12", 9093)
    assert plan.with_broker().hosts.items() > plan.within(SUBNET).hosts.items()


def test_the_same_nodes_in_another_subnet() -> None:
    plan = DockerAddresses(SUBNET, brokers=2, zookeepers=3, clients=2)
    moved = plan.within(IPv4Network("198.19.0.0/24"))
    assert moved.hosts.keys() == plan.hosts.keys()
    assert moved.host("client-2") == "198.19.0.102"


def test_one_more_broker_leaves_the_others_where_they_are() -> None:
    addresses = DockerAddresses(SUBNET, brokers=79, zookeepers=3, clients=2)
    wider = addresses.with_broker()
    assert wider.hosts.items() > addresses.hosts.items()
    assert wider.hosts.keys() - addresses.hosts.keys() == {"broker-80"}


def test_an_impossible_count_is_refused() -> None:
    with pytest.raises(UsageError, match="151 clients are not possible: allowed are 1 to 150"):
        DockerAddresses(SUBNET, brokers=1, zookeepers=3, clients=151)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "route"
    monkeypatch.setattr(addresses.routes, "__defaults__", (path,))
    return path


def test_the_default_route_leads_everywhere_and_takes_nothing(table: Path) -> None:
    table.write_text(HEADER + DEFAULT + LAN)
    assert routes() == [IPv4Network("192.168.0.0/24")]
    assert len(list(candidates())) == 512


def test_a_subnet_with_a_route_into_it_is_not_tried(table: Path) -> None:
    table.write_text(HEADER + DEFAULT + TUNNEL)
    tried = list(candidates())
    assert len(tried) == 256
    assert not any(subnet.overlaps(IPv4Network("198.18.0.0/16")) for subnet in tried)


def test_without_a_routing_table_every_subnet_is_tried(table: Path) -> None:
    assert not table.exists()
    assert len(set(islice(candidates(), 600))) == 512

"""A lease gives a network to one run only, and only one whose ports are free."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nemesis.interfaces.links import Address
from nemesis.runtimes.local import addresses
from nemesis.runtimes.local.addresses import AddressPlan, take_lease
from nemesis.support.errors import MissingRequirement, UsageError
from nemesis.support.journal import Journal, read_journals


def test_each_node_has_an_address_of_its_own() -> None:
    plan = AddressPlan("127.4.9", brokers=3, zookeepers=1, clients=2)
    assert plan.brokers == ["broker-1", "broker-2", "broker-3"]
    assert plan.advertised("broker-2") == Address("127.4.9.2", 9092)
    assert plan.direct("broker-2") == Address("127.4.9.2", 19092)
    assert plan.advertised("zookeeper-1") == Address("127.4.9.51", 2181)
    assert plan.host("client-2") == "127.4.9.102"
    assert plan.callers()["127.4.9.102"] == "client-2"
    assert len(plan.callers()) == 6


def test_controllers_of_a_quorum_have_addresses_where_zookeeper_would_have() -> None:
    plan = AddressPlan("127.4.9", brokers=2, zookeepers=0, clients=1, controllers=2)
    assert plan.advertised("controller-2") == Address("127.4.9.52", 9093)
    assert plan.routes("controller-2") == [
        (Address("127.4.9.52", 9093), Address("127.4.9.52", 19093))
    ]
    assert plan.callers()["127.4.9.52"] == "controller-2"
    assert Address("127.4.9.52", 19093) in plan.listening()
    assert plan.with_broker().controllers == plan.controllers


def test_one_more_broker_leaves_the_others_where_they_are() -> None:
    plan = AddressPlan("127.4.9", brokers=49, zookeepers=1, clients=2)
    wider = plan.with_broker()
    assert wider.advertised("broker-50") == Address("127.4.9.50", 9092)
    assert wider.callers().items() > plan.callers().items()


@pytest.mark.parametrize("count", [-1, 0, 51])
def test_an_impossible_count_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=rf"{count} brokers are not possible: allowed are 1 to 50"):
        AddressPlan("127.4.9", brokers=count, zookeepers=1, clients=1)


def test_two_leases_never_meet(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, directory=tmp_path)
    first = take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
    second = take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
    assert first.plan.network != second.plan.network
    first.release()
    third = take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
    assert third.plan.network == first.plan.network
    [(_, entry)] = read_journals(tmp_path)
    assert entry is not None
    assert set(entry.leases) == {str(second.path), str(third.path)}


def test_a_network_with_a_taken_port_is_passed_over(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, directory=tmp_path)
    first = take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
    first.release()
    with socket.create_server((first.plan.host("broker-1"), addresses.BROKER_PORT)):
        second = take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
    assert second.plan.network != first.plan.network
    assert not first.path.exists()


def test_a_port_taken_everywhere_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        port = everywhere.getsockname()[1]
        monkeypatch.setattr(addresses, "BROKER_PORT", port)
        journal = Journal.create(tmp_path, directory=tmp_path)
        with pytest.raises(MissingRequirement, match=rf"port {port} is in use on 127\."):
            take_lease(journal, brokers=1, zookeepers=1, clients=1, directory=tmp_path)
    assert list((tmp_path / "leases").iterdir()) == []

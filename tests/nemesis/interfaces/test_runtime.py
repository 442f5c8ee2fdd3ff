"""Which faults are possible follows from the parts that a runtime has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nemesis.faults import FAULTS
from nemesis.interfaces.brokers import AlterPartitionRequests
from nemesis.interfaces.clocks import Clocks
from nemesis.interfaces.disks import Disks, LogDirs
from nemesis.interfaces.ensemble import Ensemble, EnsembleMembers
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.network import Delays
from nemesis.interfaces.processes import BrokerMembership, Processes
from nemesis.interfaces.runtime import NEEDED, first_missing, missing_of
from nemesis.interfaces.unsupported import Unsupported, supported
from tests.nemesis.faults.partial_runtime import runtime_of

FOREIGN = Unsupported("the harness did not start this cluster")
NO_ZOOKEEPER = Unsupported("the cluster has no ZooKeeper")
FOREIGN_ZOOKEEPER = SimpleNamespace(zookeepers=["zookeeper-1"])
KRAFT = SimpleNamespace(zookeepers=[])
NETWORK = SimpleNamespace(
    requests=SimpleNamespace(strays="strays"),
    delays="delays",
    connections="connections",
    bandwidth="bandwidth",
)
PROCESSES = SimpleNamespace(membership="membership", traces="traces")
DISKS = SimpleNamespace(log_dirs=Unsupported("one disk"), log_tails="tails", power="power")
ENSEMBLE = SimpleNamespace(members="members")


def test_every_need_of_a_fault_is_a_part() -> None:
    for fault in FAULTS.values():
        assert fault.needs
        assert fault.needs <= set(NEEDED), fault.name


def test_a_smaller_part_is_missing_by_itself_or_with_the_part_above_it() -> None:
    runtime = runtime_of(FOREIGN_ZOOKEEPER, network=NETWORK, disks=DISKS, processes=FOREIGN)
    missing = missing_of(runtime)
    assert missing[LogDirs] == Unsupported("one disk")
    assert missing[BrokerMembership] == FOREIGN
    assert not missing.keys() & {Disks, Delays}
    assert first_missing({Disks}, missing) is None
    assert first_missing({AlterPartitionRequests}, missing) is None


def test_a_cluster_that_the_harness_did_not_start_can_be_cut_off_but_not_killed() -> None:
    missing = missing_of(
        runtime_of(
            None,
            network=NETWORK,
            processes=FOREIGN,
            disks=FOREIGN,
            clocks=FOREIGN,
            ensemble=ENSEMBLE,
        )
    )
    assert first_missing(FAULTS["partition"].needs, missing) is None
    assert first_missing(FAULTS["expire-session"].needs, missing) is None
    for name in ("kill", "pause", "restart", "add-broker", "power-cut", "clock-skew"):
        assert first_missing(FAULTS[name].needs, missing) == FOREIGN


def test_a_cluster_whose_zookeeper_is_out_of_reach_has_no_sessions_and_no_members_to_strike() -> (
    None
):
    missing = missing_of(
        runtime_of(
            FOREIGN_ZOOKEEPER,
            network=NETWORK,
            processes=PROCESSES,
            disks=DISKS,
            clocks="clocks",
            ensemble=NO_ZOOKEEPER,
        )
    )
    assert missing.keys() & {Ensemble, EnsembleMembers, Processes, Clocks} == {
        Ensemble,
        EnsembleMembers,
    }
    assert first_missing(FAULTS["kill"].needs, missing) is None
    for name in ("expire-session", "kill-zookeeper", "delay-control"):
        assert first_missing(FAULTS[name].needs, missing) == NO_ZOOKEEPER


def test_in_a_kraft_cluster_the_links_end_sessions() -> None:
    missing = missing_of(runtime_of(KRAFT, network=NETWORK, ensemble=NO_ZOOKEEPER))
    assert first_missing(FAULTS["expire-session"].needs, missing) is None
    assert first_missing(FAULTS["delay-control"].needs, missing) == NO_ZOOKEEPER
    without_links = missing_of(runtime_of(KRAFT, network=FOREIGN, ensemble=NO_ZOOKEEPER))
    assert first_missing(FAULTS["expire-session"].needs, without_links) == FOREIGN


def test_who_asks_for_a_missing_part_is_refused_with_the_reason() -> None:
    assert supported("part") == "part"
    with pytest.raises(FaultUnsupported, match=r": the cluster has no ZooKeeper$"):
        supported(NO_ZOOKEEPER)

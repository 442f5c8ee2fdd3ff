"""What counts as a cluster that is whole again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from random import Random
from typing import Any, cast
from uuid import UUID

import pytest

from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.history.recorder import Recorder
from nemesis.running import convergence as convergence_module
from nemesis.running.convergence import ConvergenceWatch
from nemesis.running.convergence_checks import (
    Wrong,
    wrong_brokers,
    wrong_controller,
    wrong_deletions,
    wrong_isrs,
    wrong_leaders,
    wrong_metadata,
    wrong_reassignments,
)
from nemesis.support.errors import HarnessError
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.cluster_metadata import (
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from tests.nemesis.running.two_brokers import Address

TP = ("orders", 0)


def snapshot(
    *, controller: int | None = 1, leader: int = 1, isr: tuple[int, ...] = (1, 2)
) -> ClusterSnapshot:
    return ClusterSnapshot(
        controller=None if controller is None else Ephemeral(controller, session=1, czxid=1),
        controller_epoch=1,
        brokers={1: Ephemeral(1, 1, 1), 2: Ephemeral(2, 2, 2)},
        partitions={TP: PartitionState(leader, leader_epoch=3, isr=isr, replicas=(1, 2))},
    )


def answer(*, controller: int = 1, leader_epoch: int = 3) -> ClusterMetadata:
    return ClusterMetadata(
        brokers={1: ("a", 1), 2: ("b", 1)},
        controller_id=controller,
        topics={
            "orders": TopicMetadata(
                UUID(int=1),
                {0: PartitionMetadata(1, leader_epoch, replicas=(1, 2), isr=(2, 1))},
            )
        },
    )


def test_a_whole_cluster_has_nothing_wrong() -> None:
    whole = snapshot()
    assert wrong_controller(whole) == []
    assert wrong_leaders(whole) == []
    assert wrong_isrs(whole) == []
    assert wrong_metadata(whole, {1: answer(), 2: answer()}) == []


def test_a_broker_that_is_not_registered() -> None:
    assert wrong_brokers(snapshot(), [1, 2]) == []
    assert wrong_brokers(snapshot(), [1, 2, 3]) == [Wrong("it is not registered", node=3)]


class BlindView:
    async def snapshot(self) -> ClusterSnapshot:
        raise HarnessError("ZooKeeper does not answer the harness")


class NoBrokers:
    """A runtime whose cluster has no brokers: a watch cannot ask any."""

    brokers: tuple[str, ...] = ()
    clients = ("client-1",)
    codec = wire_format

    def client_host(self, client: str) -> str:
        del client
        return "127.0.0.1"

    @property
    def cluster(self) -> NoBrokers:
        return self


class EmptyView:
    async def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot(controller=Ephemeral(1, 1, 1), brokers={1: Ephemeral(1, 1, 1)})


def finish(view: object, *, healed_after_s: float = 0.0) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    recorder = Recorder(
        lambda line: lines.append(json.loads(line)), process="harness", clock=lambda: 0
    )

    async def scene() -> None:
        watch = ConvergenceWatch(
            cast("Any", NoBrokers()), cast("Any", view), recorder, Random("convergence")
        )
        watching = asyncio.create_task(watch.watch())
        await asyncio.sleep(0)
        watch.healed(asyncio.get_running_loop().time() + healed_after_s)
        await watch.finish(0.0)
        watching.cancel()

    asyncio.run(scene())
    return lines


def test_what_the_harness_could_not_look_at_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence_module, "OPERATION_TIMEOUT_S", 0.05)
    lines = finish(BlindView())
    checks = [line for line in lines if line["kind"] == "convergence"]
    errors = {line["check"]: line["error"] for line in checks}
    assert set(errors) == {*ConvergenceWatch.CHECKS, "produce"}
    assert all(error.startswith("HARNESS: ") for error in errors.values())
    (blind,) = [line for line in lines if line["kind"] == "end-state"]
    assert (blind["source"], blind["error"]) == (
        "zookeeper",
        "ZooKeeper does not answer the harness",
    )
    assert errors["isr"] == "HARNESS: ZooKeeper does not answer the harness"


def test_what_held_before_the_last_fault_was_undone_held_at_once() -> None:
    lines = finish(EmptyView(), healed_after_s=60.0)
    checks = {line["check"]: line["duration_ms"] for line in lines if line["kind"] == "convergence"}
    assert checks == dict.fromkeys(ConvergenceWatch.CHECKS, 0)


class ViewWithOffsets:
    """A cluster whose groups have committed offsets."""

    async def snapshot(self) -> ClusterSnapshot:
        known = snapshot()
        state = known.partitions[TP]
        return replace(known, partitions={TP: state, ("__consumer_offsets", 0): state})


def test_nothing_is_produced_to_internal_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence_module, "OPERATION_TIMEOUT_S", 0.05)
    monkeypatch.setattr(convergence_module, "LEAST_USE_S", 0.0)
    monkeypatch.setattr(convergence_module, "bootstrap", lambda _cluster: [Address()])
    used = [line for line in finish(ViewWithOffsets()) if line.get("check") == "produce"]
    assert [(line["topic"], line["partition"]) for line in used] == [TP]


def test_no_controller() -> None:
    assert wrong_controller(snapshot(controller=None)) == [Wrong("there is no controller")]


def test_a_controller_that_is_not_registered() -> None:
    assert wrong_controller(snapshot(controller=9)) == [
        Wrong("the controller 9 is not registered", node=9)
    ]


def test_a_partition_without_a_leader() -> None:
    assert wrong_leaders(snapshot(leader=-1)) == [
        Wrong("its leader is -1, which is not registered", "orders", 0)
    ]


def test_a_partition_without_a_state() -> None:
    assert wrong_leaders(ClusterSnapshot(unassigned=(TP,))) == [
        Wrong("it has no state", "orders", 0)
    ]


def test_an_isr_that_is_not_full() -> None:
    assert wrong_isrs(snapshot(isr=(1,))) == [
        Wrong("its ISR is [1], its replicas are [1, 2]", "orders", 0)
    ]


def moving(*, asked_for: bool = False) -> ClusterSnapshot:
    state = PartitionState(1, 3, isr=(1, 2), replicas=(1, 2), is_moving=True)
    return ClusterSnapshot(partitions={TP: state}, is_reassignment_asked_for=asked_for)


def test_a_deletion_that_is_not_finished() -> None:
    assert wrong_deletions(snapshot()) == []
    assert wrong_deletions(ClusterSnapshot(deletions=("gone",))) == [
        Wrong("its deletion is not finished", "gone")
    ]


def test_a_reassignment_that_is_not_finished() -> None:
    assert wrong_reassignments(snapshot()) == []
    unfinished = Wrong("its reassignment is not finished, its replicas are [1, 2]", *TP)
    assert wrong_reassignments(moving()) == [unfinished]
    assert wrong_reassignments(moving(asked_for=True)) == [
        Wrong("/admin/reassign_partitions is still there"),
        unfinished,
    ]


def test_an_election_that_no_controller_has_taken() -> None:
    asked = replace(snapshot(), is_election_asked_for=True)
    assert wrong_controller(snapshot()) == []
    assert wrong_controller(asked) == [Wrong("/admin/preferred_replica_election is still there")]


def test_metadata_of_what_is_not_there_any_more_or_is_another_topic() -> None:
    gone = ClusterSnapshot(controller=Ephemeral(1, 1, 1), brokers=snapshot().brokers)
    assert wrong_metadata(gone, {1: answer()}) == [
        Wrong("it knows the partition, which ZooKeeper does not have", *TP, 1)
    ]
    state = replace(snapshot().partitions[TP], topic_id=UUID(int=2), replicas=(2, 1))
    other = replace(snapshot(), partitions={TP: state})
    assert wrong_metadata(other, {1: answer()}) == [
        Wrong(f"it knows a topic with id {UUID(int=1)}, ZooKeeper {UUID(int=2)}", *TP, 1),
        Wrong("it knows replicas [1, 2], ZooKeeper [2, 1]", *TP, 1),
    ]


def test_stale_metadata_is_found_at_the_broker_that_holds_it() -> None:
    wrong = wrong_metadata(snapshot(), {1: answer(leader_epoch=2), 2: answer(controller=2)})
    assert [(item.node, item.topic) for item in wrong] == [(1, "orders"), (2, None)]


def test_a_broker_that_does_not_answer() -> None:
    assert wrong_metadata(snapshot(), {2: None}) == [
        Wrong("it does not answer a Metadata request", node=2)
    ]

"""What is wrong with a cluster that should have converged: pure functions of what the controller and brokers report.

Each function checks one condition and returns what violates it, nothing when the condition holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.support.node_names import is_controller, node_of
from nemesis.workloads.kafka.cluster_metadata import ClusterMetadata


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is not as it should be. ``error`` is one short clause."""

    error: str
    topic: str | None = None
    partition: int | None = None
    node: int | None = None


def wrong_brokers(snapshot: ClusterSnapshot, expected: Iterable[int]) -> list[Wrong]:
    """Every broker of the cluster is registered."""
    missing = sorted(set(expected) - set(snapshot.brokers))
    return [Wrong("it is not registered", node=broker) for broker in missing]


def wrong_controller(snapshot: ClusterSnapshot) -> list[Wrong]:
    """A controller exists, is registered if it is a broker, and has taken what operators asked for in ZooKeeper."""
    if snapshot.controller is None:
        return [Wrong("there is no controller")]
    controller = snapshot.controller.broker_id
    if controller not in snapshot.brokers and not is_controller(node_of(controller)):
        return [Wrong(f"the controller {controller} is not registered", node=controller)]
    if snapshot.is_election_asked_for:
        return [Wrong("/admin/preferred_replica_election is still there")]
    return []


def wrong_leaders(snapshot: ClusterSnapshot) -> list[Wrong]:
    """Every partition has a leader that is registered."""
    wrong = [Wrong("it has no state", *tp) for tp in snapshot.unassigned]
    wrong += [
        Wrong(f"its leader is {state.leader}, which is not registered", *tp)
        for tp, state in sorted(snapshot.partitions.items())
        if state.leader not in snapshot.brokers
    ]
    return wrong


def wrong_isrs(snapshot: ClusterSnapshot) -> list[Wrong]:
    """Every ISR holds all assigned replicas."""
    return [
        Wrong(f"its ISR is {list(state.isr)}, its replicas are {list(state.replicas)}", *tp)
        for tp, state in sorted(snapshot.partitions.items())
        if set(state.isr) != set(state.replicas)
    ]


def wrong_deletions(snapshot: ClusterSnapshot) -> list[Wrong]:
    """No topic is marked for deletion any more."""
    return [Wrong("its deletion is not finished", topic) for topic in snapshot.deletions]


def wrong_reassignments(snapshot: ClusterSnapshot) -> list[Wrong]:
    """No reassignment is asked for or in progress."""
    asked = [Wrong("/admin/reassign_partitions is still there")]
    return (asked if snapshot.is_reassignment_asked_for else []) + [
        Wrong(f"its reassignment is not finished, its replicas are {list(state.replicas)}", *tp)
        for tp, state in sorted(snapshot.partitions.items())
        if state.is_moving
    ]


def wrong_metadata(
    snapshot: ClusterSnapshot, answers: Mapping[int, ClusterMetadata | None]
) -> list[Wrong]:
    """Every broker says of brokers, controller and partitions what the snapshot says. ``answers`` by broker id."""
    wrong: list[Wrong] = []
    authority = snapshot.authority
    for node, answer in sorted(answers.items()):
        if answer is None:
            wrong.append(Wrong("it does not answer a Metadata request", node=node))
            continue
        if set(answer.brokers) != set(snapshot.brokers):
            brokers = f"{sorted(answer.brokers)}, {authority} {sorted(snapshot.brokers)}"
            wrong.append(Wrong(f"it knows brokers {brokers}", node=node))
        controller = -1 if snapshot.controller is None else snapshot.controller.broker_id
        if snapshot.do_brokers_name_it and answer.controller_id != controller:
            controllers = f"{answer.controller_id}, {authority} {controller}"
            wrong.append(Wrong(f"it knows controller {controllers}", node=node))
        wrong += _wrong_partitions(snapshot, answer, node)
    return wrong


def _wrong_partitions(snapshot: ClusterSnapshot, answer: ClusterMetadata, node: int) -> list[Wrong]:
    wrong: list[Wrong] = []
    authority = snapshot.authority
    known = {
        (topic, partition): (partition_state, metadata.topic_id)
        for topic, metadata in answer.topics.items()
        for partition, partition_state in metadata.partitions.items()
    }
    wrong += [
        Wrong(f"it knows the partition, which {authority} does not have", *tp, node)
        for tp in sorted(known.keys() - snapshot.partitions.keys() - set(snapshot.unassigned))
    ]
    for tp, state in sorted(snapshot.partitions.items()):
        if tp not in known:
            wrong.append(Wrong("it does not know the partition", *tp, node))
            continue
        partition_state, topic_id = known[tp]
        if state.topic_id not in (None, topic_id):
            ids = f"{topic_id}, {authority} {state.topic_id}"
            wrong.append(Wrong(f"it knows a topic with id {ids}", *tp, node))
        if partition_state.replicas != state.replicas:
            replicas = f"{list(partition_state.replicas)}, {authority} {list(state.replicas)}"
            wrong.append(Wrong(f"it knows replicas {replicas}", *tp, node))
        brokers_view = (
            partition_state.leader,
            partition_state.leader_epoch,
            set(partition_state.isr),
        )
        if brokers_view != (state.leader, state.leader_epoch, set(state.isr)):
            wrong.append(
                Wrong(
                    f"it knows leader {partition_state.leader}, leader epoch {partition_state.leader_epoch}, ISR "
                    f"{list(partition_state.isr)}; {authority} {state.leader}, {state.leader_epoch}, "
                    f"{list(state.isr)}",
                    *tp,
                    node,
                )
            )
    return wrong

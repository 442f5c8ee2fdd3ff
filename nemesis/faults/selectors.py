"""The victim of a fault: symbolic names, resolved when the fault is aimed.

``controller``, ``bystander`` (a broker that is not the controller), ``leader``, ``leader("t",0)``,
``follower``, ``follower("t",0)``, ``coordinator("g")`` (of a group of consumers), ``one``, ``minority``, ``majority``,
``all``, ``touched``, ``tracer``, ``broker-2``, ``controller-2`` (a KRaft controller that is not a broker),
``voters-minority``, ``voters-majority`` (of KRaft).
Only these three names and ``controller`` stand for a controller that is not a broker.

Without a partition, ``leader`` and ``follower`` draw one. Nodes that another fault in force has touched, and dead
ones, are not chosen. Two names are exceptions: ``touched`` is a living broker that another fault in force has struck,
and ``tracer`` the broker whose event is the fault's trigger (refused by the conductor when another fault has touched
it, unless the fault may share its victim). A name that stands for nobody now is unresolved, and the
conductor asks again for a few seconds.

Client processes have names of their own: ``client_selectors``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState
from nemesis.faults.traced_trigger import TRACER
from nemesis.interfaces.cluster import controllers_of, voters_of
from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import GROUP_METADATA_TOPIC_NAME
from nemesis.registry import hint
from nemesis.support.errors import UsageError
from nemesis.support.node_names import BROKER, CONTROLLER, node_of

ALLOWED = (
    'controller, bystander, leader, leader("t",0), follower, follower("t",0), coordinator("g"), one, '
    "minority, majority, all, touched, tracer, broker-N, controller-N, voters-minority, voters-majority "
    "(client processes and group-leader are for kill-client and pause-client)"
)
TOUCHED = "touched"
_PARTITION = re.compile(r"""(leader|follower)\(\s*["']([^"']+)["']\s*,\s*(\d+)\s*\)""")
_GROUP = re.compile(r"""coordinator\(\s*["']([^"']+)["']\s*\)""")
_NODE = re.compile(r"(broker|controller)-(\d+)")
VOTERS_MINORITY = "voters-minority"
VOTERS_MAJORITY = "voters-majority"
_PLAIN = frozenset(
    {
        "controller",
        "bystander",
        "leader",
        "follower",
        "one",
        "minority",
        "majority",
        "all",
        VOTERS_MINORITY,
        VOTERS_MAJORITY,
        TOUCHED,
        TRACER,
    }
)


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector. ``role`` is a plain word, ``coordinator`` or ``node``.

    ``partition`` narrows leader and follower, ``group`` says whose coordinator it is.
    """

    role: str
    partition: tuple[str, int] | None = None
    node: str | None = None
    group: str | None = None


def parse(text: str) -> Selector:
    """Return what the text names; raises ``UsageError`` naming the allowed forms."""
    if text in _PLAIN:
        return Selector(text)
    if _NODE.fullmatch(text):
        return Selector("node", node=text)
    if match := _PARTITION.fullmatch(text):
        return Selector(match[1], partition=(match[2], int(match[3])))
    if match := _GROUP.fullmatch(text):
        return Selector("coordinator", group=match[1])
    raise UsageError(f"unknown selector {text!r}{hint(text, _PLAIN)}: allowed are {ALLOWED}")


def check(text: str, nodes: frozenset[str]) -> None:
    """Raise ``UsageError`` when the text is not a selector, or names what is not among ``nodes``."""
    selector = parse(text)
    if selector.node is not None and selector.node not in nodes:
        known = ", ".join(sorted(node for node in nodes if node.startswith((BROKER, CONTROLLER))))
        raise UsageError(f"unknown selector {text!r}: this cluster has {known}")
    if selector.role in (VOTERS_MINORITY, VOTERS_MAJORITY) and any(
        node.startswith("zookeeper-") for node in nodes
    ):
        raise UsageError(f"selector {text!r}: this cluster has ZooKeeper and no voters")


def choose(
    selector: Selector,
    *,
    free: Sequence[str],
    snapshot: ClusterSnapshot,
    total: int,
    rng: Random,
    controllers: Sequence[str] = (),
) -> list[str]:
    """Return the nodes that the selector stands for, out of ``free``; raises ``SelectorUnresolved``.

    ``total`` is the number of brokers in the cluster: a majority is a majority of all, not of the free ones.
    ``controllers`` are the free nodes among the KRaft controllers that are not brokers.
    """
    if selector.role == "controller":
        if snapshot.controller is None:
            raise SelectorUnresolved("there is no controller")
        return [_require(node_of(snapshot.controller.broker_id), [*free, *controllers])]
    if selector.role == "bystander":
        if snapshot.controller is None:
            raise SelectorUnresolved("there is no controller")
        others = sorted(set(free) - {node_of(snapshot.controller.broker_id)})
        if not others:
            raise SelectorUnresolved("no untouched bystander was found")
        registered = {node_of(broker) for broker in snapshot.brokers}
        # The death of a broker that has not registered yet, as after a restart, has no effect.
        return [rng.choice([node for node in others if node in registered] or others)]
    if selector.role == "node":
        assert selector.node is not None
        return [_require(selector.node, [*free, *controllers])]
    if selector.group is not None:
        return [_require(_coordinator(selector.group, snapshot), free)]
    if selector.role in ("leader", "follower"):
        return [_choose_replica(selector, free, snapshot, rng)]
    return _several(selector.role, free, total, rng)


def _several(role: str, free: Sequence[str], total: int, rng: Random) -> list[str]:
    count = {"one": 1, "minority": (total - 1) // 2, "majority": total // 2 + 1, "all": total}
    wanted = max(1, count[role])
    if len(free) < wanted:
        raise SelectorUnresolved(f"only {len(free)} nodes are untouched, {wanted} are needed")
    return sorted(rng.sample(sorted(free), wanted))


async def resolve(
    text: str,
    context: FaultContext,
    rng: Random,
    *,
    shares_victim: bool = False,
    only_brokers: bool = False,
) -> list[str]:
    """Return the nodes that the selector stands for at this moment; raises ``SelectorUnresolved``.

    ``only_brokers``: where the controller is not a broker, ``controller`` stands for some broker.
    """
    cluster = context.cluster
    if only_brokers and text == "controller" and controllers_of(cluster):
        text = "one"
    alive = [node for node in cluster.brokers if context.is_alive(node)]
    if text == TOUCHED:
        if not (struck := [node for node in alive if context.struck[node]]):
            raise SelectorUnresolved("no fault in force has struck a broker that lives")
        return [rng.choice(struck)]
    if text == TRACER:
        if context.tracer is None:
            raise SelectorUnresolved("no event was the trigger")
        return [_require(context.tracer, alive)]

    def untouched(nodes: Iterable[str]) -> list[str]:
        living = (node for node in nodes if context.is_alive(node))
        return [node for node in living if shares_victim or not context.touched[node]]

    if text in (VOTERS_MINORITY, VOTERS_MAJORITY):
        voters = voters_of(cluster)
        role = text.removeprefix("voters-")
        return _several(role, untouched(voters), len(voters), rng)
    return choose(
        parse(text),
        free=untouched(cluster.brokers),
        snapshot=await context.view.snapshot(),
        total=len(cluster.brokers),
        rng=rng,
        controllers=untouched(controllers_of(cluster)),
    )


def _require(node: str, free: Sequence[str]) -> str:
    if node not in free:
        raise SelectorUnresolved(f"{node} is dead, or another fault has touched it")
    return node


def _coordinator(group: str, snapshot: ClusterSnapshot) -> str:
    """The broker that leads the group's partition of the offsets topic."""
    known = {*snapshot.partitions, *snapshot.unassigned}
    count = sum(topic == GROUP_METADATA_TOPIC_NAME for topic, _ in known)
    if not count:
        raise SelectorUnresolved(f"{GROUP_METADATA_TOPIC_NAME} does not exist yet")
    partition = GROUP_METADATA_TOPIC_NAME, partition_for(group, count)
    state = snapshot.partitions.get(partition)
    if state is None or state.leader < 0:
        raise SelectorUnresolved(f"{partition[0]}-{partition[1]} has no leader")
    return node_of(state.leader)


def _choose_replica(
    selector: Selector, free: Sequence[str], snapshot: ClusterSnapshot, rng: Random
) -> str:
    if selector.partition is not None and selector.partition not in snapshot.partitions:
        topic, partition = selector.partition
        raise SelectorUnresolved(f"{topic}-{partition} has no state yet")
    states = (
        [snapshot.partitions[selector.partition]]
        if selector.partition is not None
        else [state for _, state in sorted(snapshot.partitions.items())]
    )
    choices = sorted(
        {
            node
            for state in states
            for node in map(node_of, _replicas(selector.role, state))
            if node in free
        }
    )
    if not choices:
        raise SelectorUnresolved(f"no untouched {selector.role} was found")
    return rng.choice(choices)


def _replicas(role: str, state: PartitionState) -> list[int]:
    if role == "leader":
        return [state.leader] if state.leader >= 0 else []
    return [replica for replica in state.isr if replica != state.leader]

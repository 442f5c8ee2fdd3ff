"""Shapes of a partition: pure seeded functions from nodes to a grudge.

A grudge maps a node to the nodes that it no longer hears. Jepsen's word, and Jepsen's shapes:
halves, majority ring, bridge, one node, one way; and two that only a cluster with a coordination
service has: cut from ZooKeeper, cut from clients. ZooKeeper is one of the ``nodes`` or not, as the
caller decides: a broker that loses its peers but keeps ZooKeeper breaks differently from one that
loses both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Literal

from nemesis.interfaces.links import Link

Grudge = Mapping[str, frozenset[str]]
"""Node → the nodes that it no longer hears; nobody is left out of hearing itself."""

Direction = Literal["both", "deaf", "mute"]
"""Seen from the victim: it hears nothing, it is not heard, or both."""

Shape = Callable[[Sequence[str], str, Random], Grudge]


def between(side: Iterable[str], other: Iterable[str]) -> Grudge:
    """Neither side hears the other."""
    left, right = frozenset(side), frozenset(other)
    return {**dict.fromkeys(sorted(left), right), **dict.fromkeys(sorted(right), left)}


def halves(nodes: Sequence[str], victim: str, rng: Random) -> Grudge:
    """Two groups, the victim in the smaller one (for three nodes: alone)."""
    others = [node for node in nodes if node != victim]
    small = {victim, *rng.sample(others, max(0, len(nodes) // 2 - 1))}
    return between(small, [node for node in nodes if node not in small])


def one_node(nodes: Sequence[str], victim: str, rng: Random) -> Grudge:
    """The victim hears nobody and nobody hears it."""
    del rng
    return between([victim], [node for node in nodes if node != victim])


def majority_ring(nodes: Sequence[str], victim: str, rng: Random) -> Grudge:
    """Every node hears a majority, and no two hear the same one: nodes on a ring hear those nearest to them."""
    del victim
    ring = list(nodes)
    rng.shuffle(ring)
    count, majority = len(ring), len(ring) // 2 + 1
    grudge: dict[str, frozenset[str]] = {}
    for index, node in enumerate(ring):
        before = (majority - 1) // 2
        heard = {ring[(index - before + step) % count] for step in range(majority)}
        grudge[node] = frozenset(nodes) - heard
    return {node: deaf for node, deaf in sorted(grudge.items()) if deaf}


def bridge(nodes: Sequence[str], victim: str, rng: Random) -> Grudge:
    """Two groups that hear each other only through the victim, which hears everybody."""
    others = [node for node in nodes if node != victim]
    rng.shuffle(others)
    middle = len(others) // 2
    return between(others[:middle], others[middle:]) if middle else {}


def one_way(nodes: Sequence[str], victim: str, rng: Random) -> Grudge:
    """The victim hears nobody, or nobody hears the victim; the other direction works."""
    others = [node for node in nodes if node != victim]
    return deaf(victim, others) if rng.random() < 0.5 else mute(victim, others)


def deaf(victim: str, others: Iterable[str]) -> Grudge:
    """The victim hears none of the others; they hear it."""
    return {victim: frozenset(others)}


def mute(victim: str, others: Iterable[str]) -> Grudge:
    """None of the others hears the victim; it hears them."""
    return dict.fromkeys(sorted(others), frozenset([victim]))


def towards(others: Sequence[str], victim: str, direction: Direction) -> Grudge:
    """The victim is cut from the others in this direction."""
    if direction == "deaf":
        return deaf(victim, others)
    if direction == "mute":
        return mute(victim, others)
    return between([victim], others)


def links(grudge: Grudge) -> frozenset[Link]:
    """Return the directions of bytes that the grudge stops."""
    return frozenset(
        Link(source, target) for target, deaf_to in grudge.items() for source in deaf_to
    )


SHAPES: Mapping[str, Shape] = {
    "halves": halves,
    "majority-ring": majority_ring,
    "bridge": bridge,
    "one-way": one_way,
    "one-node": one_node,
}
"""The shapes among the nodes of a cluster; see ``partition`` for those towards ZooKeeper and clients."""

"""``partition``: bytes between two sides are held; connections stay open.

Shapes among brokers are those of ``grudge``; with ``zookeeper: majority`` ZooKeeper stands on the
larger side, so that the smaller one loses its sessions too. ``from-zookeeper`` and
``from-clients`` cut the victim from those only: a controller cut from ZooKeeper alone becomes a
zombie that still reaches every broker. ``with-clients`` leaves the victim to all clients, and the clients to the
victim: an old leader is all that they reach.

Where KRaft's controllers are nodes of their own, they take ZooKeeper's place in what is cut from a broker. A partition
around a controller is one among the controllers: its other controllers take ZooKeeper's place, and the brokers that of
its clients.

``direction`` is seen from the victim: ``deaf`` hears nothing, ``mute`` is not heard, ``both``.
What is held is delivered at the heal, even when its sender has closed since.

Effect: a probe that crossed before does not cross any more. Undone: it crosses again. While no pair can be probed (the
other end restarts), nothing could be measured: the victim is unresolved, and asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from msgspec import Meta

from nemesis.faults import grudge, selectors
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    SelectorUnresolved,
    selector_field,
)
from nemesis.faults.grudge import Direction, Grudge
from nemesis.faults.link_rules import Cut
from nemesis.interfaces.cluster import controllers_of
from nemesis.interfaces.links import Link
from nemesis.interfaces.network import Network
from nemesis.support.errors import UsageError
from nemesis.support.node_names import CONTROLLER

ShapeName = Literal[
    "halves",
    "majority-ring",
    "bridge",
    "one-way",
    "one-node",
    "from-zookeeper",
    "from-clients",
    "with-clients",
]

PROBED_PAIRS = 4
"""Enough to see that the rules are there; every pair more is a connection more."""

CROSSES_TIMEOUT_S = 1.5
HELD_TIMEOUT_S = 0.5
PROBE_ATTEMPTS = 3
"""Before the hold: a broker that is busy may miss the first."""

PROBE_INTERVAL_S = 0.1


class Partition(Fault, frozen=True, kw_only=True):
    """See the module. ``selector`` names the node that the shape is built around."""

    name: ClassVar[str] = "partition"
    summary: ClassVar[str] = (
        "holds the bytes between two sides, per direction; connections stay open, held bytes arrive at the heal"
    )
    effect: ClassVar[str] = "probes across the cut crossed before, and none crosses now"
    heal: ClassVar[str] = "the same probes cross again"
    needs: ClassVar[frozenset[type]] = frozenset({Network})

    shape: Annotated[ShapeName, Meta(description="the [shape](#shapes-of-a-partition)")]
    selector: Selector = selector_field("one")
    direction: Annotated[Direction, Meta(description="what the victim loses")] = "both"
    zookeeper: Annotated[
        Literal["neutral", "majority"], Meta(description="the side on which ZooKeeper stands")
    ] = "neutral"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        # Most often the controller is struck: it is the part under test.
        shape: ShapeName = rng.choice(
            [
                "halves",
                "majority-ring",
                "bridge",
                "one-way",
                "one-node",
                "from-zookeeper",
                "from-clients",
            ]
        )
        directed = shape in ("one-way", "from-zookeeper", "from-clients")
        return cls(
            shape=shape,
            selector=rng.choice(["controller", "controller", "leader", "one"]),
            direction=rng.choice(["deaf", "mute"]) if directed and rng.random() < 0.6 else "both",
            zookeeper=rng.choice(["neutral", "majority", "majority"]),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)
        brokers = sorted(node for node in nodes if node.startswith("broker-"))
        apart = sorted(node for node in nodes if node.startswith(("zookeeper-", CONTROLLER)))
        chosen_grudge = self.grudge(
            brokers[0], brokers=brokers, zookeepers=apart, clients=["client"], rng=Random(0)
        )
        if not grudge.links(chosen_grudge):
            raise UsageError(
                f"partition of shape {self.shape!r} cuts nothing in a cluster of {len(brokers)} brokers"
                f"{'' if apart else ' without ZooKeeper'}: choose another shape or raise --brokers"
            )

    async def aim(self, context: FaultContext, rng: Random) -> PartitionStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        cluster = context.cluster
        around = surroundings(
            victim,
            brokers=cluster.brokers,
            controllers=controllers_of(cluster),
            zookeepers=cluster.zookeepers,
            clients=cluster.clients,
        )
        chosen_grudge = self.grudge(
            victim,
            brokers=around.peers,
            zookeepers=around.apart,
            clients=around.clients,
            rng=rng,
        )
        return PartitionStrike.aimed(self.shape, context, victim, chosen_grudge)

    def grudge(
        self,
        victim: str,
        *,
        brokers: list[str],
        zookeepers: list[str],
        clients: list[str],
        rng: Random,
    ) -> Grudge:
        """Return who no longer hears whom. Pure: the same ``rng`` state gives the same grudge."""
        if self.shape in ("from-zookeeper", "from-clients"):
            others = zookeepers if self.shape == "from-zookeeper" else clients
            return grudge.towards(others, victim, self.direction)
        others = [broker for broker in brokers if broker != victim]
        if self.shape == "with-clients":
            cut = grudge.between([victim, *clients], others)
            is_cut_off = self.zookeeper == "majority"
            return _merge(cut, grudge.between([victim], zookeepers)) if is_cut_off else cut
        if self.shape == "one-way":
            direction: Direction = self.direction
            if direction == "both":
                direction = rng.choice(["deaf", "mute"])
            far = others + zookeepers if self.zookeeper == "majority" else others
            return grudge.towards(far, victim, direction)
        chosen_grudge = grudge.SHAPES[self.shape](brokers, victim, rng)
        if self.zookeeper == "majority" and self.shape in ("halves", "one-node"):
            small = frozenset(brokers) - chosen_grudge[victim]
            chosen_grudge = _merge(chosen_grudge, grudge.between(small, zookeepers))
        return chosen_grudge


class Surroundings(NamedTuple):
    """What a shape is built from, around one victim."""

    peers: list[str]
    """The nodes of the victim's kind, itself included."""
    apart: list[str]
    """Those that keep the metadata, where they are other nodes than the victim."""
    clients: list[str]


def surroundings(
    victim: str,
    *,
    brokers: list[str],
    controllers: list[str],
    zookeepers: list[str],
    clients: list[str],
) -> Surroundings:
    """Return what the shapes mean around this victim; ``controllers`` are those of KRaft that are not brokers."""
    if victim in controllers:
        others = [controller for controller in controllers if controller != victim]
        return Surroundings(controllers, others, brokers)
    return Surroundings(brokers, [*zookeepers, *controllers], clients)


class PartitionStrike:
    """One partition that has found its victim."""

    def __init__(
        self, shape: str, context: FaultContext, victim: str, chosen_grudge: Grudge
    ) -> None:
        self._context = context
        self._links = grudge.links(chosen_grudge)
        self._guard = context.links.guard(Cut(self._links))
        self.victims = [victim]
        self.intent: dict[str, Any] = {
            "shape": shape,
            "grudge": {node: sorted(deaf) for node, deaf in chosen_grudge.items()},
        }

    @classmethod
    def aimed(cls, shape: str, context: FaultContext, victim: str, chosen_grudge: Grudge) -> Self:
        """Raises ``SelectorUnresolved`` while nothing of it could be measured."""
        strike = cls(shape, context, victim, chosen_grudge)
        if not strike.pairs():
            raise SelectorUnresolved(f"no probe can cross what {shape} around {victim} cuts")
        return strike

    async def apply(self) -> Measured:
        context = self._context
        before = await self._probe_before()
        await self._guard.put()
        crossed = [pair for pair, has_crossed in before.items() if has_crossed]
        after = await context.probe_all(crossed, timeout_s=HELD_TIMEOUT_S)
        counters = await context.network.counters(self._links)
        return Measured(
            is_effective=bool(after) and not any(after.values()),
            detail={
                "probes_before": _readable(before),
                "probes_after": _readable(after),
                "held_bytes": sum(counter.held_bytes for counter in counters.values()),
            },
        )

    async def undo(self) -> None:
        await self._guard.remove()

    async def verify(self) -> Measured:
        return await probes_cross(self.pairs(), self._context)

    async def _probe_before(self) -> dict[tuple[str, str], bool]:
        """Probe until anything crosses, a few times at most."""
        before: dict[tuple[str, str], bool] = {}
        for attempt in range(PROBE_ATTEMPTS):
            if attempt:
                await asyncio.sleep(PROBE_INTERVAL_S)
            pairs = self.pairs()[:PROBED_PAIRS]
            before = await self._context.probe_all(pairs, timeout_s=CROSSES_TIMEOUT_S)
            if any(before.values()):
                break
        return before

    def pairs(self) -> list[tuple[str, str]]:
        """What can be probed at this moment: both ends answer and no rule of another fault is in the way."""
        return open_pairs(self._links, self._context, is_held=self._guard.is_put)


def open_pairs(
    links: Iterable[Link], context: FaultContext, *, is_held: bool = False
) -> list[tuple[str, str]]:
    """Return the pairs of nodes whose probes would be answered but for these links, when we hold them ourselves."""
    pairs = sorted({_probe_pair(link) for link in links})
    return [
        (a, b)
        for a, b in pairs
        if context.can_answer(a)
        and context.can_answer(b)
        and (is_held or context.links.is_pair_open(a, b))
    ]


async def probes_cross(pairs: list[tuple[str, str]], context: FaultContext) -> Measured:
    """Probe some of the pairs: the proof that nothing is in the way any more."""
    crossed = await context.probe_all(pairs[:PROBED_PAIRS], timeout_s=CROSSES_TIMEOUT_S)
    return Measured(
        is_effective=bool(crossed) and all(crossed.values()),
        detail={"probes": _readable(crossed)},
    )


def _probe_pair(link: Link) -> tuple[str, str]:
    """A probe is a request and its reply, so one per pair of nodes says all; who asks must be a caller."""
    rank = {"client": 0, "broker": 1, "controller": 2, "zookeeper": 3}
    a, b = sorted((link.source, link.target), key=lambda node: (rank[node.split("-")[0]], node))
    return a, b


def _merge(a: Grudge, b: Grudge) -> Grudge:
    return {node: a.get(node, frozenset()) | b.get(node, frozenset()) for node in sorted({*a, *b})}


def _readable(probes: dict[tuple[str, str], bool]) -> dict[str, bool]:
    return {f"{a} to {b}": crossed for (a, b), crossed in probes.items()}

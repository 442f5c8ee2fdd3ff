"""``stray-requests``: requests of one kind leave the order of their connection.

TCP keeps the order of one connection only. A sender that gets no answer in time gives its connection up, reconnects,
and sends again or goes on; what it sent before may still be in the network. So a receiver may see, of one sender:

* ``overtaken``: the old request after newer ones. Connections stop at their next request of the kind; those made after
  the first stop are free; at the heal the stopped bytes arrive.
* ``lost``: the same, but what the sender has given up by the heal never arrives, as when a router forgets the path.
* ``copied``: the request twice, ``late_ms`` apart, with newer ones between. The sender of a real copy was not answered
  the first time and sent the same request again; that it is answered here changes nothing for the receiver.

Copies are realistic for senders that repeat a request until they are answered: a controller its control requests, a
leader its AlterPartition, a follower its Fetch. A producer repeats a batch only under its producer id, and a plan
cannot know whether the producers of a run have one: a copied Produce request is refused. An ``overtaken`` one is
what any producer with a time-out can cause. So it is with the requests of transactions, which only plans and the
recipe ``late-transaction-requests`` name: a late EndTxn or a late marker may end the next transaction (KAFKA-17754),
which is a fault of the protocol before Kafka 4.

Control and AlterPartition requests are sent only when leaders change, so sessions of other brokers end meanwhile
(``churn``): three, and further ones, also of controllers, while no request has gone astray. A broker that leads and is
the controller sends AlterPartition to itself, without a link; with two live brokers that is nearly always so.

Effect: bytes are stopped, or copies have arrived. Undone: no connection is stopped and no copy is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from random import Random
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    SelectorUnresolved,
    selector_field,
)
from nemesis.faults.churn import controller_of, end_a_session
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.link_rules import CopyRequests, StrandRequests
from nemesis.interfaces.brokers import AlterPartitionRequests
from nemesis.interfaces.ensemble import Ensemble
from nemesis.interfaces.links import (
    ADD_PARTITIONS_TO_TXN_API_KEY,
    ALTER_PARTITION_API_KEY,
    CONTROL_API_KEYS,
    END_TXN_API_KEY,
    FETCH_API_KEY,
    PRODUCE_API_KEY,
    WRITE_TXN_MARKERS_API_KEY,
    Link,
)
from nemesis.interfaces.network import StrayLinks
from nemesis.interfaces.unsupported import supported
from nemesis.reference.model import TRANSACTION_STATE_TOPIC_NAME
from nemesis.support.errors import UsageError
from nemesis.support.node_names import id_of, node_of

RequestKind = Literal[
    "control",
    "alter-partition",
    "fetch",
    "produce",
    "add-partitions-to-txn",
    "end-txn",
    "write-txn-markers",
]
Fate = Literal["copied", "overtaken", "lost"]

SELECTORS: Final[Mapping[RequestKind, str]] = MappingProxyType(
    {
        "control": "bystander",
        "alter-partition": "bystander",
        "fetch": "follower",
        "produce": "leader",
    }
)
"""Whom drawn faults strike: the receiver of control and Produce requests, the sender of the others."""
TRANSACTION_KEYS: Final[Mapping[RequestKind, int]] = MappingProxyType(
    {
        "add-partitions-to-txn": ADD_PARTITIONS_TO_TXN_API_KEY,
        "end-txn": END_TXN_API_KEY,
        "write-txn-markers": WRITE_TXN_MARKERS_API_KEY,
    }
)
"""The requests of transactions, which only plans and a recipe name, and their API keys."""
ELECTIONS: Final = 3
ELECTION_INTERVAL_S: Final = 1.2
PATIENCE_S: Final = 2.4
"""Without a stray request, before the next step: a broker whose session ended is in sync again by then."""
EFFECT_TIMEOUT_S: Final = 6.0
POLL_INTERVAL_S: Final = 0.1
MAX_LATE_MS: Final = 10_000
NO_LEADER: Final = -1


class StrayRequests(Fault, frozen=True, kw_only=True):
    """Let requests of a kind to or from the victim be copied, overtaken or lost for ``duration_s``."""

    name: ClassVar[str] = "stray-requests"
    summary: ClassVar[str] = (
        "requests of one kind arrive twice, after newer ones, or never, as their senders reconnect"
    )
    effect: ClassVar[str] = "bytes of the requests are stopped, or copies have arrived"
    heal: ClassVar[str] = "no connection is stopped, and no copy is under way"
    needs: ClassVar[frozenset[type]] = frozenset({StrayLinks, Ensemble, AlterPartitionRequests})

    requests: Annotated[RequestKind, Meta(description="the kind of requests")] = "control"
    fate: Annotated[Fate, Meta(description="what happens to the requests")] = "overtaken"
    selector: Selector = selector_field("bystander")
    late_ms: Annotated[
        int,
        Meta(ge=100, le=MAX_LATE_MS, description="milliseconds after which a copy arrives"),
    ] = 2_000

    @property
    def own_needs(self) -> frozenset[type]:
        """Requests of transactions are sent all the time: no session has to end for them, so KRaft will do."""
        return frozenset({StrayLinks}) if self.requests in TRANSACTION_KEYS else self.needs

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        requests: RequestKind = rng.choice(["control", "control", *SELECTORS])
        fates: list[Fate] = ["overtaken", "lost"]
        if requests != "produce":
            fates.append("copied")
        return cls(
            requests=requests,
            fate=rng.choice(fates),
            selector=SELECTORS[requests],
            late_ms=round(10 ** rng.uniform(2.5, 3.8)),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)
        if self.fate == "copied" and self.requests in {"produce", *TRANSACTION_KEYS}:
            raise UsageError(
                "stray-requests copies requests: expected those that their sender repeats however it was answered, "
                f"got {self.requests}; use fate overtaken"
            )

    async def aim(self, context: FaultContext, rng: Random) -> StrayRequestsStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        if silence := await self._silence_of(victim, context):
            raise SelectorUnresolved(silence)
        return StrayRequestsStrike(self, context, victim, rng)

    async def _silence_of(self, victim: str, context: FaultContext) -> str:
        """Why the victim sends no such requests to others as the cluster stands; empty if it may."""
        if self.requests not in ("alter-partition", "write-txn-markers"):
            return ""
        snapshot = await context.view.snapshot()
        if self.requests == "alter-partition":
            may = is_proposing(victim, snapshot)
            return "" if may else f"{victim} has no partition whose ISR may change"
        may = is_marking(victim, snapshot, context.is_alive)
        return "" if may else f"{victim} has no living leader to send markers to"


def is_marking(node: str, snapshot: ClusterSnapshot, is_alive: Callable[[str], bool]) -> bool:
    """Whether others lead partitions that transactions write to: a coordinator marks its own without a link."""
    leaders = {
        state.leader
        for (topic, _), state in snapshot.partitions.items()
        if topic != TRANSACTION_STATE_TOPIC_NAME
    }
    return any(map(is_alive, map(node_of, leaders - {NO_LEADER, id_of(node)})))


def is_proposing(node: str, snapshot: ClusterSnapshot) -> bool:
    """Whether elections can make the node lead other replicas: one that was drained of replicas sends nothing."""
    broker = id_of(node)
    return any(
        broker in state.target and len(state.target) > 1 for state in snapshot.partitions.values()
    )


class StrayRequestsStrike:
    """A broker whose requests are about to go astray.

    A coordinator may lose its partition at once, as when the preferred leader is elected. The rule follows the
    partition to the broker that leads it now, until a request has strayed.
    """

    def __init__(
        self, fault: StrayRequests, context: FaultContext, victim: str, rng: Random
    ) -> None:
        self._fault = fault
        self._context = context
        self._rng = rng
        first = _Watched(fault, context, victim)
        self._watched = {victim: first}
        self.victims = [victim]
        self.intent: dict[str, Any] = {
            "requests": fault.requests,
            "fate": fault.fate,
            "links": len(first.links),
        }

    async def apply(self) -> Measured:
        await self._watched[self.victims[0]].put()
        ended: list[str] = []
        for _ in range(ELECTIONS if self._needs_elections else 0):
            ended += await self._end_a_session(spares_controller=True)
            await asyncio.sleep(ELECTION_INTERVAL_S)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + EFFECT_TIMEOUT_S + self._fault.late_ms / 1000
        next_step = loop.time() + (0 if self._needs_elections else PATIENCE_S)
        while not (strayed := await self._strayed()) and loop.time() < deadline:
            if loop.time() >= next_step and not await self._are_copies_under_way():
                next_step = loop.time() + PATIENCE_S
                if self._needs_elections:
                    ended += await self._end_a_session(spares_controller=False)
                elif self._fault.requests in TRANSACTION_KEYS:
                    await self._follow_partition()
            await asyncio.sleep(POLL_INTERVAL_S)
        unit = "copies" if self._fault.fate == "copied" else "stopped_bytes"
        detail: dict[str, Any] = {unit: strayed, "sessions_ended": ended}
        if len(self._watched) > 1:
            detail["followed_to"] = [node for node in self._watched if node not in self.victims]
        return Measured(is_effective=strayed > 0, detail=detail)

    async def undo(self) -> None:
        async with AsyncExitStack() as rules:  # one that fails does not keep the others in force
            for watched in self._watched.values():
                rules.push_async_callback(watched.remove)

    async def verify(self) -> Measured:
        strays = supported(supported(self._context.network.requests).strays)
        links = frozenset(link for watched in self._watched.values() for link in watched.links)
        astray = await strays.astray(links)
        return Measured(is_effective=astray == 0, detail={"astray": astray})

    async def _strayed(self) -> int:
        return sum([await watched.strayed() for watched in self._watched.values()])

    async def _follow_partition(self) -> None:
        """Stop the requests of the broker that leads the selector's partition now, too."""
        partition = selectors.parse(self._fault.selector).partition
        if partition is None:
            return
        state = (await self._context.view.snapshot()).partitions.get(partition)
        if state is None or state.leader == NO_LEADER:
            return
        node = node_of(state.leader)
        if node not in self._watched:
            self._watched[node] = watched = _Watched(self._fault, self._context, node)
            await watched.put()

    async def _are_copies_under_way(self) -> bool:
        return self._fault.fate == "copied" and not (await self.verify()).is_effective

    @property
    def _needs_elections(self) -> bool:
        return self._fault.requests in ("control", "alter-partition")

    async def _end_a_session(self, *, spares_controller: bool) -> list[str]:
        """Give controllers and leaders something to send."""
        snapshot = await self._context.view.snapshot()
        spared = set(self.victims)
        if controller_of(snapshot) in spared:  # it sends to itself without a link
            spared = set(map(node_of, snapshot.brokers)) - spared
        return await end_a_session(
            self._context,
            snapshot,
            self._rng,
            spared=spared,
            spares_controller=spares_controller,
        )


class _Watched:
    """The links of one broker under the fault's rule, and what went astray on them."""

    def __init__(self, fault: StrayRequests, context: FaultContext, node: str) -> None:
        self.links = links_of(fault.requests, node, context)
        self._network = context.network
        self._counts_copies = fault.fate == "copied"
        self._guard = context.links.guard(
            CopyRequests(self.links, fault.late_ms)
            if self._counts_copies
            else StrandRequests(self.links, is_abandoned_lost=fault.fate == "lost")
        )
        self._before = 0

    async def put(self) -> None:
        self._before = await self._count()
        await self._guard.put()

    async def remove(self) -> None:
        await self._guard.remove()

    async def strayed(self) -> int:
        """How many copies have arrived, or how many bytes were stopped, since the rule is in force."""
        return await self._count() - self._before

    async def _count(self) -> int:
        counters = (await self._network.counters(self.links)).values()
        return sum(
            counter.copies if self._counts_copies else counter.held_bytes for counter in counters
        )


def links_of(requests: RequestKind, victim: str, context: FaultContext) -> frozenset[Link]:
    """Return the links on which such requests reach the victim, or leave it."""
    cluster = context.cluster
    others = [broker for broker in cluster.brokers if broker != victim]
    match requests:
        case "control":
            return frozenset(Link(o, victim, key) for o in others for key in CONTROL_API_KEYS)
        case "alter-partition":
            return frozenset(Link(victim, other, ALTER_PARTITION_API_KEY) for other in others)
        case "fetch":
            return frozenset(Link(victim, other, FETCH_API_KEY) for other in others)
        case "produce":
            return frozenset(Link(c, victim, PRODUCE_API_KEY) for c in cluster.clients)
        case "write-txn-markers":
            return frozenset(Link(victim, other, WRITE_TXN_MARKERS_API_KEY) for other in others)
        case "add-partitions-to-txn" | "end-txn":
            key = TRANSACTION_KEYS[requests]
            return frozenset(Link(client, victim, key) for client in cluster.clients)

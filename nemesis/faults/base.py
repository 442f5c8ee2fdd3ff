"""What a fault is, what it may touch, and what it must report.

A fault says what, whom and how long. It is carried out in four steps, driven by ``conductor``:

1. ``aim``: resolve the selector now; ``SelectorUnresolved`` when there is none at the moment.
2. ``apply``: do it and *measure* that it had an effect (a process dead, a session gone, a probe held).
3. ``undo``: take it back.
4. ``verify``: see that it is taken back; asked again until it says yes or the run ends.

Overlapping faults do not undo one another: ``LinkBook`` counts how many hold a link, ``DelayBook`` adds up by how much
they slow it down, ``ImpairmentBook`` what they do to its packets, and nodes that a fault has touched are not chosen by
another one unless it says so (``shares_target``).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, ClassVar, Protocol, Self

import msgspec
from msgspec import Meta

from nemesis.faults.administrator import Administrator
from nemesis.faults.cluster_view import ClusterView
from nemesis.history.recorder import Recorder
from nemesis.interfaces.impairment import Impairment
from nemesis.interfaces.runtime import Capability, Link, Runtime

MAX_DURATION_S = 3600.0
RESTART_S = 3.0
"""A broker's start until it answers and has its session, on a busy machine."""

Duration = Annotated[float, Meta(ge=0.0, le=MAX_DURATION_S)]
"""Seconds that a fault stays in force; 0 for what is over at once."""


class SelectorUnresolved(Exception):
    """Nobody answers to the victim at this moment. Try again for a few seconds, then skip the fault."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen after a step. ``is_effective``: the effect is there (after ``verify``: it is undone)."""

    is_effective: bool
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DrawRange:
    """From where durations are drawn, in seconds."""

    low_s: float
    high_s: float

    def draw(self, rng: Random) -> float:
        return round(rng.uniform(self.low_s, self.high_s), 2)


class LinkBook:
    """Holds links on behalf of several faults: a link flows again when the last of them lets go."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._holds: Counter[Link] = Counter()

    async def hold(self, links: frozenset[Link]) -> None:
        new = frozenset(link for link in links if not self._holds[link])
        self._holds.update(links)
        if new:
            await self._runtime.cut(new)

    async def release(self, links: frozenset[Link]) -> None:
        self._holds.subtract(links)
        free = frozenset(link for link in links if self._holds[link] <= 0)
        for link in free:
            del self._holds[link]
        if free:
            await self._runtime.restore(free)

    def is_pair_open(self, a: str, b: str) -> bool:
        """Whether no rule holds whole connections between the two, in either direction."""
        return not (self._holds[Link(a, b)] > 0 or self._holds[Link(b, a)] > 0)


class DelayBook:
    """Slows links down on behalf of several faults, whose delays add up."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._delays_ms: Counter[Link] = Counter()

    async def slow(self, links: frozenset[Link], delay_ms: int) -> None:
        self._delays_ms.update(dict.fromkeys(links, delay_ms))
        await self._tell(links)

    async def quicken(self, links: frozenset[Link], delay_ms: int) -> None:
        self._delays_ms.subtract(dict.fromkeys(links, delay_ms))
        await self._tell(links)

    async def _tell(self, links: frozenset[Link]) -> None:
        for delay_ms in sorted({self._delays_ms[link] for link in links}):
            same = frozenset(link for link in links if self._delays_ms[link] == delay_ms)
            await self._runtime.delay(same, delay_ms=delay_ms)


class ImpairmentBook:
    """Treats the packets of links badly on behalf of several faults, each of which adds to it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._causes: defaultdict[Link, list[Impairment]] = defaultdict(list)

    async def add(self, links: frozenset[Link], impairment: Impairment) -> None:
        for link in links:
            self._causes[link].append(impairment)
        await self._tell(links)

    async def remove(self, links: frozenset[Link], impairment: Impairment) -> None:
        for link in links:
            self._causes[link].remove(impairment)
        await self._tell(links)

    async def _tell(self, links: frozenset[Link]) -> None:
        alike: defaultdict[Impairment, set[Link]] = defaultdict(set)
        for link in links:
            alike[Impairment.of(self._causes[link])].add(link)
        for impairment, same in alike.items():
            await self._runtime.impair(frozenset(same), impairment)


@dataclass(slots=True)
class FaultContext:
    """What faults act on: the runtime, ZooKeeper as the harness sees it, and who is touched already."""

    runtime: Runtime
    view: ClusterView
    links: LinkBook
    delays: DelayBook
    impairments: ImpairmentBook
    administrator: Administrator
    touched: Counter[str] = field(default_factory=Counter)
    """How many faults in force have chosen a node."""
    stopped: set[str] = field(default_factory=set)
    """Nodes that a fault in force has killed or paused: they answer no probe."""

    @classmethod
    def of(cls, runtime: Runtime, view: ClusterView, recorder: Recorder | None = None) -> Self:
        """``recorder`` is for what faults ask of the controller."""
        return cls(
            runtime=runtime,
            view=view,
            links=LinkBook(runtime),
            delays=DelayBook(runtime),
            impairments=ImpairmentBook(runtime),
            administrator=Administrator(runtime, recorder),
        )

    def can_answer(self, node: str) -> bool:
        """Whether a probe of this node would be answered but for the links."""
        if node in self.runtime.clients:
            return True
        return node not in self.stopped and self.runtime.is_alive(node)

    async def probe_all(
        self, pairs: Iterable[tuple[str, str]], *, timeout_s: float
    ) -> dict[tuple[str, str], bool]:
        """Probe these (source, target) pairs at the same time."""
        wanted = sorted(set(pairs))
        answers = await asyncio.gather(
            *(self.runtime.probe(a, b, timeout_s=timeout_s) for a, b in wanted)
        )
        return dict(zip(wanted, answers, strict=True))


class Strike(Protocol):
    """A fault that has found its victims. One object serves one strike."""

    victims: list[str]
    """The resolved nodes."""
    intent: dict[str, Any]
    """What is about to be done, for the history."""

    async def apply(self) -> Measured: ...
    async def undo(self) -> None:
        """Take it back; raises ``NodeExited`` when a node does not come back, the rest being undone."""

    async def verify(self) -> Measured: ...


def selector_field(default: str) -> Any:
    """Return the field ``selector`` of a fault. Plan files call it ``target``, as they always have."""
    return msgspec.field(default=default, name="target")


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every fault: a frozen value that can be written in a plan file.

    Its fields are what a plan file may say. ``SelectorUnresolved`` may be raised by ``aim`` only.
    """

    name: ClassVar[str]
    """What ``--faults`` and plan files call it."""
    summary: ClassVar[str]
    """One line for ``nemesis list``."""
    capability: ClassVar[Capability]
    shares_victim: ClassVar[bool] = False
    """Whether it may strike a node that another fault has touched, and another one its node."""

    recovery_s: ClassVar[float] = 0.0
    """How long the undoing itself takes; the next recipe of a derived plan waits for it."""

    duration_s: Duration = 0.0

    @classmethod
    @abstractmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        """Return a random fault of this kind."""

    @abstractmethod
    async def aim(self, context: FaultContext, rng: Random) -> Strike:
        """Resolve the victim as the cluster stands now; raises ``SelectorUnresolved``."""

    def check(self, nodes: frozenset[str]) -> None:
        """Raise ``UsageError`` when a field names what this cluster of ``nodes`` does not have."""

"""Link rules: what faults do to links, as values, and the guards that remove them.

A fault states a rule (``Cut``, ``HoldRequests``, ``Delay``, … : the classes below) and gets a guard. While the guard
is in force the rule applies; leaving it removes exactly that rule, whatever other faults do to the same links::

    async with context.links.guard(Cut(links)):
        ...

The idea is that of turmoil's ``rule.rs``: a rule lives as long as its guard. A fault that applies and undoes in two
steps calls ``put`` and ``remove``.

Runtimes set the state of a link; they know no rules. ``LinkRules`` composes the rules in force: a link stays cut as
long as any rule cuts it, delays add up, impairments are independent causes, the lowest rate limits a node, and copies
come as late as the slowest rule lets them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from nemesis.interfaces.impairment import Impairment
from nemesis.interfaces.links import Link
from nemesis.interfaces.network import StrayLinks
from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import supported

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Cut:
    """Hold all bytes on these links; connections stay open."""

    links: frozenset[Link]


@dataclass(frozen=True, slots=True)
class HoldRequests:
    """Hold requests of one kind: each link has an ``api_key``."""

    links: frozenset[Link]


@dataclass(frozen=True, slots=True)
class Delay:
    """Let everything on these links take ``delay_ms`` milliseconds longer."""

    links: frozenset[Link]
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Impair:
    """Treat the packets of these links badly."""

    links: frozenset[Link]
    impairment: Impairment


@dataclass(frozen=True, slots=True)
class Throttle:
    """Let at most ``rate_kbit_s`` kbit/s leave the node."""

    node: str
    rate_kbit_s: int


@dataclass(frozen=True, slots=True)
class CopyRequests:
    """Let requests of one kind arrive once more, later, on connections of their own: each link has an ``api_key``."""

    links: frozenset[Link]
    after_ms: int


@dataclass(frozen=True, slots=True)
class StrandRequests:
    """Stop connections at a request of one kind, and leave later ones free: each link has an ``api_key``."""

    links: frozenset[Link]
    is_abandoned_lost: bool
    """Whether requests that their sender has given up never arrive."""


StrayRule = CopyRequests | StrandRequests
LinkRule = Cut | HoldRequests | Delay | Impair | Throttle | StrayRule


class LinkGuard:
    """A rule from ``put`` to ``remove``. Use it once."""

    def __init__(self, rules: LinkRules, rule: LinkRule) -> None:
        self.rule = rule
        self._rules = rules
        self._is_put = False

    @property
    def is_put(self) -> bool:
        """Whether the rule is in force, or was being put in force when that failed."""
        return self._is_put

    async def put(self) -> None:
        """Put the rule in force; raises ``RuntimeFailure``. After a failure, too, ``remove`` takes it back."""
        self._is_put = True
        await self._rules.add(self)

    async def remove(self) -> None:
        """Remove exactly this rule; harmless when it is not in force. Raises ``RuntimeFailure``."""
        if self._is_put:
            self._is_put = False
            await self._rules.discard(self)

    async def __aenter__(self) -> Self:
        await self.put()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.remove()


class LinkRules:
    """The rules that the faults of one run have in force, composed."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._in_force: list[LinkGuard] = []

    def guard(self, rule: LinkRule) -> LinkGuard:
        """Return the guard of a rule, which is not in force yet."""
        return LinkGuard(self, rule)

    def is_pair_open(self, a: str, b: str) -> bool:
        """Return whether no rule cuts the links between the two nodes, in either direction."""
        cut = self._links_of(Cut)
        return Link(a, b) not in cut and Link(b, a) not in cut

    async def add(self, guard: LinkGuard) -> None:
        """Put a guard's rule in force; called by the guard."""
        held = self._links_of(type(guard.rule))
        self._in_force.append(guard)
        match guard.rule:
            case Cut(links):
                await self._cut(links - held)
            case HoldRequests(links):
                await self._hold(links - held)
            case StrandRequests(links):
                await self._strays.strand(links)
            case rule:
                await self._compose(rule)

    async def discard(self, guard: LinkGuard) -> None:
        """Take a guard's rule out of force; called by the guard."""
        self._in_force.remove(guard)
        held = self._links_of(type(guard.rule))
        match guard.rule:
            case Cut(links):
                await self._restore(links - held)
            case HoldRequests(links):
                await self._release(links - held)
            case StrandRequests(links, is_abandoned_lost):
                await self._strays.rejoin(links - held, is_abandoned_lost=is_abandoned_lost)
            case rule:
                await self._compose(rule)

    @property
    def _strays(self) -> StrayLinks:
        return supported(supported(supported(self._runtime.network).requests).strays)

    async def _cut(self, links: frozenset[Link]) -> None:
        if links:
            await supported(self._runtime.network).cut(links)

    async def _restore(self, links: frozenset[Link]) -> None:
        if links:
            await supported(self._runtime.network).restore(links)

    async def _hold(self, links: frozenset[Link]) -> None:
        if links:
            await supported(supported(self._runtime.network).requests).hold(links)

    async def _release(self, links: frozenset[Link]) -> None:
        if links:
            await supported(supported(self._runtime.network).requests).release(links)

    async def _compose(self, rule: CopyRequests | Delay | Impair | Throttle) -> None:
        """Set the state of what this rule concerns to what all rules in force together make of it."""
        match rule:
            case CopyRequests(links):
                for after_ms, same in sorted(_grouped(links, self._copy_after_ms).items()):
                    await self._strays.copy(same, after_ms=after_ms)
            case Delay(links):
                delays = supported(supported(self._runtime.network).delays)
                for delay_ms, same in sorted(_grouped(links, self._delay_ms).items()):
                    await delays.delay(same, delay_ms=delay_ms)
            case Impair(links):
                packets = supported(self._runtime.packets)
                for impairment, same in _grouped(links, self._impairment).items():
                    await packets.impair(same, impairment)
            case Throttle(node):
                bandwidth = supported(supported(self._runtime.network).bandwidth)
                await bandwidth.limit(node, rate_kbit_s=self._rate_kbit_s(node))

    def _links_of(self, kind: type[LinkRule]) -> frozenset[Link]:
        """Return the links that rules of a kind hold."""
        rules = (guard.rule for guard in self._in_force)
        held = (
            r.links
            for r in rules
            if isinstance(r, kind) and isinstance(r, Cut | HoldRequests | StrandRequests)
        )
        return frozenset().union(*held)

    def _copy_after_ms(self, link: Link) -> int:
        rules = (guard.rule for guard in self._in_force)
        return max(
            (r.after_ms for r in rules if isinstance(r, CopyRequests) and link in r.links),
            default=0,
        )

    def _delay_ms(self, link: Link) -> int:
        rules = (guard.rule for guard in self._in_force)
        return sum(r.delay_ms for r in rules if isinstance(r, Delay) and link in r.links)

    def _impairment(self, link: Link) -> Impairment:
        rules = (guard.rule for guard in self._in_force)
        causes = (r.impairment for r in rules if isinstance(r, Impair) and link in r.links)
        return Impairment.of(causes)

    def _rate_kbit_s(self, node: str) -> int:
        """Return the lowest rate that a rule allows the node, 0 when no rule limits it."""
        rules = (guard.rule for guard in self._in_force)
        rates = (r.rate_kbit_s for r in rules if isinstance(r, Throttle) and r.node == node)
        return min(rates, default=0)


def _grouped(
    links: Iterable[Link], state_of: Callable[[Link], State]
) -> dict[State, frozenset[Link]]:
    """Return the links by the state that they must have."""
    groups: defaultdict[State, set[Link]] = defaultdict(set)
    for link in links:
        groups[state_of(link)].add(link)
    return {state: frozenset(same) for state, same in groups.items()}

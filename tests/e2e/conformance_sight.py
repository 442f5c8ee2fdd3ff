"""What the network of a cluster looks like: everybody calls everybody, and counters are read before and after.

``look`` looks; ``against`` says, as a pure function, what of it an effect forbids and what it misses. What is forbidden
must never be seen; what is missed may come with the next look, on a busy machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations

from nemesis.faults.bandwidth import FREE_FACTOR, MEASURED_EXCESS
from nemesis.interfaces.impairment import PacketCounters
from nemesis.interfaces.links import (
    ALTER_PARTITION_API_KEY,
    CONTROL_API_KEYS,
    FETCH_API_KEY,
    Link,
    LinkCounters,
)
from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import Unsupported, supported
from tests.e2e.conformance_effects import Effect

NO_ANSWER_S = 0.6
"""So long is waited for an answer that must not come."""
ANSWER_S = 3.0
TRIPS = 4
"""Of a call: the connection there and back, the request, the answer."""
DELAYED_TRIPS = 2
"""Of these at least, on any runtime."""

NEW = LinkCounters(forwarded_bytes=0, held_bytes=0)
"""Of a link to or from a broker that was not there before the change."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sight:
    """One look."""

    answered_ms: Mapping[Pair, float]
    """The calls that were answered, from whom to whom, and how long that took."""
    crossed: frozenset[Link] = frozenset()
    """On these something came through meanwhile."""
    held: frozenset[Link] = frozenset()
    """On these something was kept or dropped since just before the change."""
    copied: frozenset[Link] = frozenset()
    """On these something arrived twice since just before the change."""
    copied_now: frozenset[Link] = frozenset()
    """On these something arrived twice meanwhile."""
    packets: Mapping[Link, PacketCounters] = field(default_factory=dict)
    """What happened to packets meanwhile, where there are any."""
    rates_kbit_s: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """In words, what is seen though it must not be, and what is not seen though it must be."""

    forbidden: list[str]
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Counts:
    """All counters at one moment."""

    links: Mapping[Link, LinkCounters]
    packets: Mapping[Link, PacketCounters]


async def count(runtime: Runtime) -> Counts:
    """Read the counters of all links; those of packets where there are any."""
    links = links_of_all(runtime)
    whole = frozenset(link for link in links if link.api_key is None)
    return Counts(
        links=await supported(runtime.network).counters(links),
        packets={}
        if isinstance(runtime.packets, Unsupported)
        else await runtime.packets.counters(whole),
    )


async def look(runtime: Runtime, effect: Effect, changed: Counts) -> Sight:
    """Look at everything that the effect speaks about; ``changed``: from just before it was put in force or ended."""
    before = await count(runtime)
    answered_ms = await _call(runtime, effect)
    after = await count(runtime)
    return Sight(
        answered_ms=answered_ms,
        crossed=frozenset(
            link
            for link, now in after.links.items()
            if now.forwarded_bytes > before.links[link].forwarded_bytes
        ),
        held=frozenset(
            link
            for link, now in after.links.items()
            if now.held_bytes > changed.links.get(link, NEW).held_bytes
        ),
        copied=frozenset(
            link
            for link, now in after.links.items()
            if now.copies > changed.links.get(link, NEW).copies
        ),
        copied_now=frozenset(
            link for link, now in after.links.items() if now.copies > before.links[link].copies
        ),
        packets={link: now.since(before.packets[link]) for link, now in after.packets.items()},
        rates_kbit_s=await _rates(runtime, effect),
    )


def against(effect: Effect, sight: Sight, calls: list[Pair]) -> Verdict:
    """Compare what is seen with what must be seen of these calls."""
    verdict = Verdict([], [])
    _judge_calls(effect, sight, calls, verdict)
    for link in sorted(effect.blocked & sight.crossed, key=str):
        verdict.forbidden.append(f"{link} lets something through")
    for link in sorted(sight.held - effect.blocked - effect.pulsed - effect.stranded, key=str):
        verdict.forbidden.append(f"{link} holds something")
    if effect.blocked and not effect.blocked & sight.held:
        verdict.missing.append("nothing is held")
    for link in sorted(sight.copied_now - effect.copied, key=str):
        verdict.forbidden.append(f"requests on {link} arrive twice")
    if effect.copied and not effect.copied & sight.copied:
        verdict.missing.append("no request arrives twice")
    if effect.stranded and not effect.stranded & sight.held:
        verdict.missing.append("nothing is stranded")
    if effect.pulsed and not effect.pulsed & sight.held:
        verdict.missing.append("nothing is held for a while")
    _judge_packets(effect, sight, verdict)
    for node, rate_kbit_s in sight.rates_kbit_s.items():
        if node in effect.narrow and rate_kbit_s > effect.rate_kbit_s * MEASURED_EXCESS:
            verdict.forbidden.append(f"{node} sends {rate_kbit_s} kbit/s")
        if node not in effect.narrow and rate_kbit_s < effect.rate_kbit_s * FREE_FACTOR:
            verdict.missing.append(f"{node} sends only {rate_kbit_s} kbit/s")
    return verdict


def calls_of(runtime: Runtime) -> list[Pair]:
    """Return who calls whom: clients and brokers all nodes but themselves, members of the ensemble one another."""
    nodes = [*runtime.cluster.brokers, *runtime.cluster.zookeepers]
    callers = [*runtime.cluster.clients, *runtime.cluster.brokers]
    among_members = list(permutations(runtime.cluster.zookeepers, 2))
    return [(a, b) for a in callers for b in nodes if a != b] + among_members


def links_of_all(runtime: Runtime) -> frozenset[Link]:
    """Return all that carries calls and answers, and what carries fetch, AlterPartition and control requests."""
    whole = {link for a, b in calls_of(runtime) for link in (Link(a, b), Link(b, a))}
    narrow = {
        Link(a, b, key)
        for a, b in permutations(runtime.cluster.brokers, 2)
        for key in (FETCH_API_KEY, ALTER_PARTITION_API_KEY, *CONTROL_API_KEYS)
    }
    return frozenset(whole | narrow)


def _judge_calls(effect: Effect, sight: Sight, calls: list[Pair], verdict: Verdict) -> None:
    for caller, called in calls:
        name, took_ms = f"{caller} to {called}", sight.answered_ms.get((caller, called))
        if not _can_be_answered(effect, (caller, called)):
            if took_ms is not None:
                verdict.forbidden.append(f"{name} is answered")
        elif took_ms is None:
            if not _is_in_doubt(effect, (caller, called)):
                verdict.missing.append(f"{name} is not answered")
        elif _ways(caller, called) <= effect.slow:
            if took_ms < DELAYED_TRIPS * effect.delay_ms:
                verdict.forbidden.append(f"{name} takes only {took_ms:.1f} ms")
        elif effect.slow and took_ms >= DELAYED_TRIPS * effect.delay_ms:
            verdict.missing.append(f"{name} takes {took_ms:.1f} ms")


def _judge_packets(effect: Effect, sight: Sight, verdict: Verdict) -> None:
    for link, counters in sight.packets.items():
        if link not in effect.impaired | effect.slow and _has_suffered(counters):
            verdict.forbidden.append(f"{link} suffers: {counters}")
    if effect.counted and not sum(
        getattr(sight.packets[link], effect.counted) for link in effect.impaired
    ):
        verdict.missing.append(f"no packet was {effect.counted}")


def _has_suffered(counters: PacketCounters) -> bool:
    return bool(counters.lost or counters.duplicated or counters.reordered or counters.delayed)


def _can_be_answered(effect: Effect, call: Pair) -> bool:
    return call[1] not in effect.silent and not _ways(*call) & effect.blocked


def _is_in_doubt(effect: Effect, call: Pair) -> bool:
    return bool(
        effect.doubtful & {*call}
        or effect.silent & {*call}
        or (effect.impaired | effect.pulsed) & _ways(*call)
    )


def _ways(a: str, b: str) -> frozenset[Link]:
    return frozenset({Link(a, b), Link(b, a)})


async def _call(runtime: Runtime, effect: Effect) -> dict[Pair, float]:
    """Let everybody call everybody at once; who is silent does not call."""
    loop = asyncio.get_running_loop()

    async def call(caller: str, called: str) -> tuple[Pair, float | None]:
        is_open = _can_be_answered(effect, (caller, called))
        is_sure = is_open and not _is_in_doubt(effect, (caller, called))
        timeout_s = (ANSWER_S if is_sure else NO_ANSWER_S) + TRIPS * effect.delay_ms / 1000
        begin = loop.time()
        is_answered = await supported(runtime.network).probe(caller, called, timeout_s=timeout_s)
        return (caller, called), (loop.time() - begin) * 1000 if is_answered else None

    pairs = [pair for pair in calls_of(runtime) if pair[0] not in effect.silent]
    answers = await asyncio.gather(*(call(*pair) for pair in pairs))
    return {pair: took_ms for pair, took_ms in answers if took_ms is not None}


async def _rates(runtime: Runtime, effect: Effect) -> dict[str, int]:
    """Measure how fast every broker sends, when the effect names some."""
    if not effect.narrow:
        return {}
    rates = [
        await supported(supported(runtime.network).bandwidth).measure(
            node, expected_kbit_s=effect.rate_kbit_s
        )
        for node in runtime.cluster.brokers
    ]
    return dict(zip(runtime.cluster.brokers, rates, strict=True))

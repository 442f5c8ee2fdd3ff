"""What each kind of fault must look like from outside, while it is in force.

An ``Effect`` names everything that may be other than usual; what it does not name must be as if there were no fault.
A new kind needs an entry in ``EFFECTS``: without one the suite does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final

from nemesis.faults import Fault, grudge
from nemesis.faults.base import FaultContext, Strike
from nemesis.faults.connections import links_of
from nemesis.faults.stray_requests import links_of as stray_links
from nemesis.interfaces.links import ALTER_PARTITION_API_KEY, CONTROL_API_KEYS, FETCH_API_KEY, Link

NO_LINKS: Final[frozenset[Link]] = frozenset()
NOBODY: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Without arguments: nothing is other than usual."""

    blocked: frozenset[Link] = NO_LINKS
    """Carry nothing; with an API key, no such requests."""
    silent: frozenset[str] = NOBODY
    """Answer nobody."""
    doubtful: frozenset[str] = NOBODY
    """May answer or not: that depends on what they make of the fault."""
    pulsed: frozenset[Link] = NO_LINKS
    """Hold what they carry for a while, again and again: something is held, and a call may be answered or not."""
    copied: frozenset[Link] = NO_LINKS
    """Requests on these arrive twice."""
    stranded: frozenset[Link] = NO_LINKS
    """Hold something on old connections; new ones, and with them calls, are free."""
    slow: frozenset[Link] = NO_LINKS
    """Take ``delay_ms`` longer."""
    delay_ms: int = 0
    impaired: frozenset[Link] = NO_LINKS
    """Something happens to their packets: ``PacketCounters`` calls it ``counted``."""
    counted: str = ""
    narrow: frozenset[str] = NOBODY
    """Send no faster than ``rate_kbit_s``."""
    rate_kbit_s: int = 0


NOTHING: Final = Effect()

Expect = Callable[[Any, Strike, FaultContext], Effect]
"""From a fault that has found its targets to its effect."""


def effect_of(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    """Return what must be seen while it is in force; raises KeyError for a kind that has no entry."""
    return EFFECTS[fault.name](fault, strike, context)


def _nothing(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    """Over as soon as it is done, or not to be seen in the network."""
    del fault, strike, context
    return NOTHING


def _silence(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault, context
    return Effect(silent=frozenset(strike.victims))


def _doubt(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault, context
    return Effect(doubtful=frozenset(strike.victims))


def _silence_in_the_ensemble(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    """The other members elect a leader meanwhile, and serve nobody."""
    del fault
    silent = frozenset(strike.victims)
    return Effect(silent=silent, doubtful=frozenset(context.cluster.zookeepers) - silent)


def _cut(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault, context
    cut = strike.intent["grudge"]
    return Effect(blocked=grudge.links({node: frozenset(deaf) for node, deaf in cut.items()}))


def _cut_in_the_ensemble(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    blocked = _cut(fault, strike, context).blocked
    return Effect(blocked=blocked, doubtful=frozenset(context.cluster.zookeepers))


def _stall(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault
    [follower] = strike.victims
    others = [broker for broker in context.cluster.brokers if broker != follower]
    return Effect(blocked=frozenset(Link(follower, leader, FETCH_API_KEY) for leader in others))


def _delayed_control(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault
    [deaf] = strike.victims
    others = [broker for broker in context.cluster.brokers if broker != deaf]
    return Effect(
        blocked=frozenset(Link(other, deaf, key) for other in others for key in CONTROL_API_KEYS)
    )


def _delayed_alter_partition(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault, strike
    pairs = permutations(context.cluster.brokers, 2)
    return Effect(blocked=frozenset(Link(*pair, ALTER_PARTITION_API_KEY) for pair in pairs))


def _pulsed_answers(fault: Fault, strike: Strike, context: FaultContext) -> Effect:
    del fault
    [victim] = strike.victims
    return Effect(pulsed=frozenset(Link(z, victim) for z in context.cluster.zookeepers))


def _stray(fault: Any, strike: Strike, context: FaultContext) -> Effect:
    """Only connections that existed at the strike hold something, and only of these requests."""
    [victim] = strike.victims
    links = stray_links(fault.requests, victim, context)
    return Effect(copied=links) if fault.fate == "copied" else Effect(stranded=links)


def _slowness(fault: Any, strike: Strike, context: FaultContext) -> Effect:
    [victim] = strike.victims
    return Effect(slow=links_of(victim, fault.peers, context), delay_ms=fault.delay_ms)


def _bad_packets(fault: Any, strike: Strike, context: FaultContext) -> Effect:
    [victim] = strike.victims
    return Effect(impaired=links_of(victim, fault.peers, context), counted=fault.counted)


def _narrowness(fault: Any, strike: Strike, context: FaultContext) -> Effect:
    del context
    victims = frozenset(strike.victims)
    return Effect(narrow=victims, doubtful=victims, rate_kbit_s=fault.rate_kbit_s)


EFFECTS: Final[Mapping[str, Expect]] = MappingProxyType(
    {
        "partition": _cut,
        "kill-controller": _silence,
        "kill": _silence,
        "expire-session": _nothing,
        "stall-follower": _stall,
        "pause": _silence,
        "restart": _nothing,
        "graceful-restart": _nothing,
        "delay-control": _delayed_control,
        "delay-alter-partition": _delayed_alter_partition,
        "rolling-restart": _nothing,
        "add-broker": _nothing,
        "remove-broker": _silence,
        "delete-controller": _nothing,
        "elect-preferred": _nothing,
        "reassign-partitions": _nothing,
        "slow-zookeeper": _pulsed_answers,
        "power-cut": _silence,
        "corrupt-tail": _silence,
        "disk-full": _doubt,
        "disk-failure": _doubt,
        "log-dir-failure": _nothing,
        "clock-skew": _nothing,
        "kill-zookeeper": _silence_in_the_ensemble,
        "pause-zookeeper": _silence_in_the_ensemble,
        "partition-zookeeper": _cut_in_the_ensemble,
        "clock-skew-zookeeper": _nothing,
        "stray-requests": _stray,
        "slow-link": _slowness,
        "reset-connections": _nothing,
        "packet-loss": _bad_packets,
        "packet-delay": _bad_packets,
        "packet-duplication": _bad_packets,
        "packet-reordering": _bad_packets,
        "bandwidth": _narrowness,
        "kill-client": _nothing,
        "pause-client": _nothing,
    }
)
"""By the kind's name, in the order of ``FAULTS``."""

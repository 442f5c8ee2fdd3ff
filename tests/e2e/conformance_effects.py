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
from nemesis.faults.base import Place, Strike
from nemesis.faults.connections import links_of
from nemesis.interfaces.runtime import (
    ALTER_PARTITION_API_KEY,
    CONTROL_API_KEYS,
    FETCH_API_KEY,
    Link,
)

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

Expect = Callable[[Any, Strike, Place], Effect]
"""From a fault that has found its targets to its effect."""


def effect_of(fault: Fault, strike: Strike, place: Place) -> Effect:
    """Return what must be seen while it is in force; raises KeyError for a kind that has no entry."""
    return EFFECTS[fault.name](fault, strike, place)


def _nothing(fault: Fault, strike: Strike, place: Place) -> Effect:
    """Over as soon as it is done, or not to be seen in the network."""
    del fault, strike, place
    return NOTHING


def _silence(fault: Fault, strike: Strike, place: Place) -> Effect:
    del fault, place
    return Effect(silent=frozenset(strike.targets))


def _doubt(fault: Fault, strike: Strike, place: Place) -> Effect:
    del fault, place
    return Effect(doubtful=frozenset(strike.targets))


def _silence_in_the_ensemble(fault: Fault, strike: Strike, place: Place) -> Effect:
    """The other members elect a leader meanwhile, and serve nobody."""
    del fault
    silent = frozenset(strike.targets)
    return Effect(silent=silent, doubtful=frozenset(place.runtime.zookeepers) - silent)


def _cut(fault: Fault, strike: Strike, place: Place) -> Effect:
    del fault, place
    cut = strike.intent["grudge"]
    return Effect(blocked=grudge.links({node: frozenset(deaf) for node, deaf in cut.items()}))


def _cut_in_the_ensemble(fault: Fault, strike: Strike, place: Place) -> Effect:
    blocked = _cut(fault, strike, place).blocked
    return Effect(blocked=blocked, doubtful=frozenset(place.runtime.zookeepers))


def _stall(fault: Fault, strike: Strike, place: Place) -> Effect:
    del fault
    [follower] = strike.targets
    others = [broker for broker in place.runtime.brokers if broker != follower]
    return Effect(blocked=frozenset(Link(follower, leader, FETCH_API_KEY) for leader in others))


def _delayed_control(fault: Fault, strike: Strike, place: Place) -> Effect:
    del fault
    [deaf] = strike.targets
    others = [broker for broker in place.runtime.brokers if broker != deaf]
    return Effect(
        blocked=frozenset(Link(other, deaf, key) for other in others for key in CONTROL_API_KEYS)
    )


def _delayed_alter_partition(fault: Fault, strike: Strike, place: Place) -> Effect:
    del fault, strike
    pairs = permutations(place.runtime.brokers, 2)
    return Effect(blocked=frozenset(Link(*pair, ALTER_PARTITION_API_KEY) for pair in pairs))


def _slowness(fault: Any, strike: Strike, place: Place) -> Effect:
    [victim] = strike.targets
    return Effect(slow=links_of(victim, fault.peers, place), delay_ms=fault.delay_ms)


def _bad_packets(fault: Any, strike: Strike, place: Place) -> Effect:
    [victim] = strike.targets
    return Effect(impaired=links_of(victim, fault.peers, place), counted=fault.counted)


def _narrowness(fault: Any, strike: Strike, place: Place) -> Effect:
    del place
    victims = frozenset(strike.targets)
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
        "slow-link": _slowness,
        "reset-connections": _nothing,
        "packet-loss": _bad_packets,
        "packet-delay": _bad_packets,
        "packet-duplication": _bad_packets,
        "packet-reordering": _bad_packets,
        "bandwidth": _narrowness,
    }
)
"""By the kind's name, in the order of ``FAULTS``."""

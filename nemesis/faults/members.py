"""Members of the ZooKeeper ensemble as victims.

``leader``, ``follower``, ``one``, ``minority``, ``majority``, ``zookeeper-2``.

Roles are asked for when the fault strikes. A member that does not serve clients at that moment is not chosen.

Faults together leave a quorum alone: without one nothing happens in ZooKeeper, no session ends, no controller is
elected, and a run that stays there tests nothing. ``majority`` breaks that rule on purpose, alone and for a short time
(``MAX_OUTAGE_S``): long enough that every broker loses its connection and knows that it may be a zombie, short enough
that the harness, which sees the cluster through ZooKeeper, does not give up, and that most of a run is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.registry import hint
from nemesis.support.errors import UsageError

ALLOWED = "leader, follower, one, minority, majority, zookeeper-N"
MAJORITY = "majority"
MAX_OUTAGE_S = 4.0
"""Twice the session time-out of our scenarios, a fifth of the patience of the harness."""
_PLAIN = frozenset({"leader", "follower", "one", "minority", MAJORITY})
_MEMBER = re.compile(r"zookeeper-\d+")


def check(text: str, nodes: frozenset[str], *, duration_s: float) -> None:
    """Raise ``UsageError`` when the text is not a selector, names an absent member, or strikes too long."""
    if text not in _PLAIN and not _MEMBER.fullmatch(text):
        similar = hint(text, _PLAIN)
        raise UsageError(f"unknown ZooKeeper selector {text!r}{similar}: allowed are {ALLOWED}")
    if _MEMBER.fullmatch(text) and text not in nodes:
        members = ", ".join(sorted(node for node in nodes if _MEMBER.fullmatch(node)))
        raise UsageError(f"unknown ZooKeeper selector {text!r}: this cluster has {members}")
    if text == MAJORITY and duration_s > MAX_OUTAGE_S:
        raise UsageError(
            f"a majority of ZooKeeper may be struck for {MAX_OUTAGE_S:g} s at most, not for {duration_s:g} s"
        )


async def resolve(text: str, context: FaultContext, rng: Random) -> dict[str, ZooKeeperMember]:
    """Return the members that the selector stands for at this moment; raises ``SelectorUnresolved``."""
    members = await context.members()
    free = {node: members[node] for node in sorted(members) if not context.touched[node]}
    chosen = choose(text, free=free, ensemble=context.cluster.zookeepers, rng=rng)
    return {node: free[node] for node in chosen}


def choose(
    text: str, *, free: Mapping[str, ZooKeeperMember], ensemble: Sequence[str], rng: Random
) -> list[str]:
    """Return the members that the selector stands for, out of ``free``; raises ``SelectorUnresolved``."""
    minority = (len(ensemble) - 1) // 2
    if text == MAJORITY:
        if len(free) < len(ensemble):
            raise SelectorUnresolved("not all of ZooKeeper is unharmed")
        return sorted(rng.sample(sorted(free), len(ensemble) // 2 + 1))
    can_be_spared = len(free) - (len(ensemble) - minority)
    wanted = minority if text == "minority" else 1
    if wanted < 1 or can_be_spared < wanted:
        raise SelectorUnresolved("ZooKeeper would be left without a quorum of unharmed members")
    candidates = _candidates(text, free)
    if len(candidates) < wanted:
        raise SelectorUnresolved(f"no untouched ZooKeeper server was found that is {text}")
    return sorted(rng.sample(candidates, wanted))


def _candidates(text: str, free: Mapping[str, ZooKeeperMember]) -> list[str]:
    nodes = sorted(free)
    if text == "follower":
        return [node for node in nodes if free[node].mode == "follower"]
    if text == "leader":
        leaders = [node for node in nodes if free[node].mode == "leader"]
        return sorted(leaders, key=lambda node: free[node].epoch)[-1:]
    if _MEMBER.fullmatch(text):
        return [text] if text in free else []
    return nodes

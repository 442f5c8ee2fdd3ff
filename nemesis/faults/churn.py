"""Churn: sessions of brokers are ended, so that leaders are elected while a fault is in force.

A fault of control requests has an effect only while controllers have something to send.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from nemesis.faults.base import FaultContext
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.support.node_names import node_of


async def end_a_session(
    context: FaultContext,
    snapshot: ClusterSnapshot,
    rng: Random,
    *,
    spared: Collection[str],
    spares_controller: bool = True,
) -> list[str]:
    """End the session of a registered broker that is not spared; of the controller only if no other broker is left, or
    if it is not to be spared.

    Return the node whose session ended, or an empty list when all registered brokers are spared.
    """
    sessions = {
        node_of(broker): owner.session for broker, owner in sorted(snapshot.brokers.items())
    }
    others = [node for node in sessions if node not in spared]
    spared_controller = controller_of(snapshot) if spares_controller else None
    candidates = [node for node in others if node != spared_controller] or others
    if not candidates:
        return []
    victim = rng.choice(candidates)
    await context.zookeeper.end_session(sessions[victim])
    return [victim]


def controller_of(snapshot: ClusterSnapshot) -> str | None:
    """Return the node of the controller."""
    owner = snapshot.controller
    return None if owner is None else node_of(owner.broker_id)

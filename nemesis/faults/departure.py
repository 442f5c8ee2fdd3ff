"""How a broker leaves a cluster: its replicas are moved away, and when it has none of these it is stopped.

An administrator may have given it new replicas meanwhile. They are moved away when the broker is no longer registered,
because it gets no more of them then. If that cannot be done, the broker starts again and leaves in another attempt:
only the broker itself can delete its replica of a topic that is being deleted.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.moves import Moves
from nemesis.support.node_names import id_of

GRACE_S = 5.0
"""A broker that leads nothing goes at once."""
POLL_INTERVAL_S = 0.1
LAST_MOVES_S = 5.0
"""So long replicas may be moved away from a broker that is not there."""
SETTLE_S = 0.5
"""So long after the end of its registration a topic may still be written whose replicas were chosen before."""


async def depart(context: FaultContext, node: str, moves: Moves, *, patience_s: float) -> Measured:
    """Let the broker leave; effective when it is dead, not registered, and has no replica.

    Otherwise ``detail`` says what was in the way when the patience was over, and it runs unless it has ended by itself.
    Raises ``NodeExited`` when it had to start again and did not.
    """
    loop, processes = asyncio.get_running_loop(), context.processes
    deadline = loop.time() + patience_s
    while True:
        left = await moves.away_from(id_of(node), deadline=deadline)
        if left:
            return Measured(is_effective=False, detail={"not_moved": named(left)})
        if not processes.is_alive(node):
            return Measured(is_effective=False, detail={"exited": "it has ended by itself"})
        context.stopped.add(node)
        ended = await processes.terminate(node, grace_s=GRACE_S)
        in_the_way = await _until_it_is_gone(context, node, moves, deadline)
        if in_the_way is None:
            return Measured(is_effective=True, detail={"ended": ended})
        await processes.restart(node)
        context.stopped.discard(node)
        if loop.time() > deadline:
            return Measured(is_effective=False, detail={"in_the_way": in_the_way})


async def _until_it_is_gone(
    context: FaultContext, node: str, moves: Moves, deadline: float
) -> str | None:
    """Wait until it is not registered, and a little longer; return what then still names it.

    A partition that has no state yet may be about to name it: it is waited for.
    """
    loop, broker = asyncio.get_running_loop(), id_of(node)
    quiet_since: float | None = None
    while True:
        snapshot = await context.view.snapshot()
        trace, now = trace_of(snapshot, node), loop.time()
        if trace not in (None, REGISTERED):
            if now > deadline or _is_being_deleted(snapshot, broker):
                return trace
            if await moves.away_from(broker, deadline=min(deadline, now + LAST_MOVES_S)):
                return trace
            continue
        if trace == REGISTERED or snapshot.unassigned:
            quiet_since = None
        elif quiet_since is None:
            quiet_since = now
        if now > deadline or (quiet_since is not None and now - quiet_since >= SETTLE_S):
            return trace
        await asyncio.sleep(POLL_INTERVAL_S)


def _is_being_deleted(snapshot: ClusterSnapshot, broker: int) -> bool:
    """Return whether a topic with a replica there is being deleted."""
    return any(
        tp[0] in snapshot.deletions and broker in state.replicas
        for tp, state in snapshot.partitions.items()
    )


REGISTERED = "it is registered"


def trace_of(snapshot: ClusterSnapshot, node: str) -> str | None:
    """Return how the cluster still knows the broker, None if it does not."""
    broker = id_of(node)
    if broker in snapshot.brokers:
        return REGISTERED
    has_it = [tp for tp, state in sorted(snapshot.partitions.items()) if broker in state.replicas]
    return f"it is a replica of {', '.join(named(has_it))}" if has_it else None


def named(partitions: list[tuple[str, int]]) -> list[str]:
    """Return the partitions' names, for the history."""
    return [f"{topic}-{partition}" for topic, partition in partitions]


def described(**detail: Any) -> dict[str, Any]:
    """Return what there is to tell."""
    return {name: value for name, value in detail.items() if value}

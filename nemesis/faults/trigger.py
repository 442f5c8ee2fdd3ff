"""At which moment a fault strikes, when the clock alone does not say it.

* ``broker-loss``: when a broker vanishes from ``/brokers/ids``. A controller that is stopped or loses its session right
  then is in the middle of electing leaders, which is where a stale write comes from.
* ``new-controller``: when the next controller has been elected. Stopped right then, it has its epoch and has changed
  nothing yet: the way is free for its predecessor.

Both last some ten milliseconds. They are learnt from ZooKeeper's watches, and whatever can be found out before is
found out before. It may no longer be true when the moment comes (the controller has changed): ``require_same`` looks
once more, with one read where that is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.support.node_names import id_of, is_controller, node_of

PATIENCE_S = 4.0


async def broker_loss(context: FaultContext) -> None:
    """Return at the moment; raises ``SelectorUnresolved`` when it does not come."""
    if not await context.view.broker_loss(timeout_s=PATIENCE_S):
        raise SelectorUnresolved("no broker lost its session")


async def new_controller(context: FaultContext) -> str:
    """Return the elected broker's node at the moment; raises ``SelectorUnresolved`` when it does not come."""
    winner = await context.view.next_controller(timeout_s=PATIENCE_S)
    if winner is None:
        raise SelectorUnresolved("no controller was elected")
    return node_of(winner)


async def sessions_of(victims: Sequence[str], context: FaultContext) -> dict[str, int]:
    """Return the victims' ZooKeeper sessions; raises ``SelectorUnresolved`` when one has none.

    With KRaft a session is 0, that of a controller too.
    """
    brokers = (await context.view.snapshot()).brokers
    sessions: dict[str, int] = {}
    for node in victims:
        if is_controller(node):
            sessions[node] = 0
        elif (owner := brokers.get(id_of(node))) is None:
            raise SelectorUnresolved(f"{node} has no session")
        else:
            sessions[node] = owner.session
    return sessions


async def require_same(selector: str, sessions: Mapping[str, int], context: FaultContext) -> None:
    """Raise ``SelectorUnresolved`` unless the nodes are still what ``selector`` names, alive and in these sessions."""
    dead = [node for node in sessions if not context.is_alive(node)]
    if dead:
        raise SelectorUnresolved(f"{dead[0]} died before the moment came")
    if selector == "controller":
        owner = await context.view.controller_now()
        now = {} if owner is None else {node_of(owner.broker_id): owner.session}
    else:
        snapshot = await context.view.snapshot()
        chosen = selectors.choose(
            selectors.parse(selector),
            free=list(sessions),
            snapshot=snapshot,
            total=len(context.cluster.brokers),
            rng=Random(0),  # there is no choice left
        )
        owners = {node_of(broker): owner for broker, owner in snapshot.brokers.items()}
        now = {node: owners[node].session for node in chosen if node in owners}
    if now != sessions:
        raise SelectorUnresolved(f"{selector} is no longer what it was before the moment came")

"""At which moment a fault strikes, when the clock alone does not say it.

* ``broker-loss``: when a broker vanishes from ``/brokers/ids``. A controller that is stopped or loses its session right
  then is in the middle of electing leaders, which is where a stale write comes from.
* ``new-controller``: when the next controller has been elected. Stopped right then, it has its epoch and has changed
  nothing yet: the way is free for its predecessor.

Both last some ten milliseconds. They are learnt from ZooKeeper's watches, and whatever can be found out before is
found out before.
"""

from __future__ import annotations

from nemesis.faults.base import Place, TargetUnresolved
from nemesis.faults.targets import node_of

PATIENCE_S = 4.0


async def broker_loss(place: Place) -> None:
    """Return at the moment; raises ``TargetUnresolved`` when it does not come."""
    if not await place.view.broker_loss(len(place.runtime.brokers), timeout_s=PATIENCE_S):
        raise TargetUnresolved("no broker vanished from ZooKeeper")


async def new_controller(place: Place) -> str:
    """Return the elected broker's node at the moment; raises ``TargetUnresolved`` when it does not come."""
    winner = await place.view.next_controller(timeout_s=PATIENCE_S)
    if winner is None:
        raise TargetUnresolved("no controller was elected")
    return node_of(winner)

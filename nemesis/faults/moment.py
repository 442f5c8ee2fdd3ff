"""At which moment a fault strikes, when the clock alone does not say it.

``broker-loss``: once a broker that should be there is missing in ``/brokers/ids``. A controller
that is stopped or loses its session right then is in the middle of electing leaders, which is
where a stale write comes from.
"""

from __future__ import annotations

from typing import Literal

from nemesis.faults.base import Place, TargetUnresolved

When = Literal["now", "broker-loss"]


async def wait_for(when: When, place: Place) -> None:
    """Raise ``TargetUnresolved`` while the moment has not come; the conductor asks again soon."""
    if when == "broker-loss":
        registered = await place.view.broker_ids()
        if len(registered) == len(place.runtime.brokers):
            raise TargetUnresolved("no broker is missing in ZooKeeper")

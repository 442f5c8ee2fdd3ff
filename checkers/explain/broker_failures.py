"""Why both cannot be: a controller has dealt with brokers that are gone, and partitions depend on them."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def dead_brokers_replaced(case: Case) -> str:
    end, depends = case.events[-1], case.events[0]
    if depends.kind == Kind.TRANSITION:
        return (
            "A replica in state Online may be elected. The controller knows that its broker is dead, so it must set "
            "the replica to Offline and remove it from the ISR."
        )
    if end.kind == Kind.CONTROLLED_SHUTDOWN_HANDLED:
        return (
            "After this answer the broker ends its process. The partition then waits until the broker's session "
            "expires, or until its leader notices the lag. A controlled shutdown must avoid that."
        )
    return (
        "The controller committed no other change of the partition before it recorded that it was done. Until the "
        "next change of brokers the partition has a dead leader, or its leader waits for a dead member of the ISR."
    )

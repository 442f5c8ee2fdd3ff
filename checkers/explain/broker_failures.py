"""Why both cannot be: a controller has dealt with brokers that are gone, and partitions depend on them."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def dead_brokers_replaced(case: Case) -> str:
    end, depends = case.events[-1], case.events[0]
    if depends.kind == Kind.TRANSITION:
        return (
            "A replica that is Online may be elected. The controller knows that its broker is "
            "gone, and must take the replica Offline, so that it leaves the ISR."
        )
    if end.kind == Kind.CONTROLLED_SHUTDOWN_HANDLED:
        return (
            "The broker ends its process because of that answer. What still depends on it then waits until its session "
            "ends, or until its leader misses it: that is what a controlled shutdown is there to avoid."
        )
    return (
        "The controller has committed nothing else for the partition before it reported that it was done. Nothing "
        "happens to the partition until the next change of brokers: clients find no leader, or a leader waits for a "
        "member that does not answer."
    )

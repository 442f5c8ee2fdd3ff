"""Why both cannot be: what a broker knew, and what it knows."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def metadata_never_back(case: Case) -> str:
    if case.events[0].kind == Kind.ZNODE:
        return (
            "A leader epoch has one leader, which ZooKeeper names. Clients that ask this broker are sent to another "
            "broker, and believe it because of the leader epoch."
        )
    return (
        "Epochs only grow in ZooKeeper, so the later state is the older one: a request that came late has replaced "
        "what a newer one had brought. Clients that ask this broker are sent to a past leader until the next change."
    )

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


def metadata_answered(case: Case) -> str:
    del case
    return (
        "The broker answers from its metadata cache, and reports each change of it before it answers any request. So "
        "the answer was in no state of the cache."
    )


def states_sent_as_written(case: Case) -> str:
    del case
    return (
        "A version of a znode has one content. The controller has read it or written it, and sends something else: it "
        "remembers a state that ZooKeeper never had."
    )

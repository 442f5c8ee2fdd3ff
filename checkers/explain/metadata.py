"""Why both cannot be: what a broker knew, and what it knows."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def metadata_never_back(case: Case) -> str:
    if case.events[0].kind == Kind.ZNODE:
        return (
            "A leader epoch has one leader. Here ZooKeeper and this broker have different leaders for the same "
            "epoch, and a client cannot notice from the epoch which of the two is out of date."
        )
    return (
        "Epochs only grow, so the state that came later is the older one. A late request has replaced newer "
        "metadata. Clients that ask this broker are sent to a former leader until the next change."
    )


def metadata_answered(case: Case) -> str:
    del case
    return (
        "The broker answers from its metadata cache, and records each change of the cache before it answers a "
        "request. The cache never had the state of this answer."
    )


def states_sent_as_written(case: Case) -> str:
    del case
    return (
        "Each version of a znode has one content. The controller sent another content for this version, so it "
        "remembers a state that ZooKeeper never had."
    )

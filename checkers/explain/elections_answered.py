"""Why both cannot be: preferred elections, and what is said of them."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def elections_answered(case: Case) -> str:
    if case.events[-1].kind == Kind.OK:
        return (
            "A controller reports each election after ZooKeeper has committed it and before it answers. No such report "
            "lies between the request and the answer, so the answer is about an election that did not happen."
        )
    return (
        "Clients and followers have to find the leader of the new epoch, and meanwhile nothing is written. The "
        "preferred replica led already: the election was not needed."
    )

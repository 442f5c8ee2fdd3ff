"""Why both cannot be: preferred elections, and what is said of them."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def elections_answered(case: Case) -> str:
    if case.events[-1].kind == Kind.OK:
        return (
            "A controller records each election after ZooKeeper has committed it and before it answers the client. "
            "It recorded no election between the request and the answer, so the election did not happen."
        )
    return (
        "The preferred replica was already leader, so the election was not needed. With the new epoch, clients and "
        "followers must find the leader again, and until then nothing is written."
    )

"""Why both cannot be: the broker epochs of an ISR's members, and those with which they fetch."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def isr_epochs_stated(case: Case) -> str:
    last = case.events[-1]
    if last.kind == Kind.FOLLOWER_EPOCH:
        return (
            "A broker epoch names one registration of a broker. A follower fetches in a leader epoch only after it has "
            "begun to follow in it, so its fetch carries the registration that it had then, or a later one (KIP-903)."
        )
    if case.first_of(Kind.BROKER_REGISTERED):
        return "A leader is a member of its ISR, and knows its own registration when it proposes."
    return (
        "The controller compares the stated epochs with the registrations of the brokers. It refuses a member that has "
        "registered again, because it may have lost what its leader saw. It cannot compare -1, and a wrong epoch "
        "admits a member that lost its records, or refuses one that has them (KIP-903)."
    )

"""Why both cannot be: the leader epoch that a broker had, and the one in which it answers."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind

_TRACES = (Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER)


def leader_epochs_fenced(case: Case) -> str:
    if any(event.kind in _TRACES for event in case.events):
        return (
            "Until its next state from the controller, the broker has the partition in this leader epoch. A client "
            "that states another one has old metadata, or the broker has. Without a refusal, the client reads from a "
            "replica that may hold other records than those it read before (KIP-320)."
        )
    return (
        "The leader epoch that a broker knows only grows, and it may answer a stated leader epoch only if it is "
        "its own. By the first answer it was past the one of the second. Without a refusal, the client does not "
        "learn that its position may be in records that were truncated (KIP-320)."
    )

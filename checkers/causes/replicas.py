"""Why a replica is not in the ISR: the first step of its way back that did not happen.

A replica comes back in this order: its broker registers, a LeaderAndIsr makes it a follower in the leader epoch, it
fetches up to the leader's log end, the leader proposes an ISR with it, the proposal is committed.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from nemesis.checkers.causes.chain import Chain, Link, expected
from nemesis.checkers.causes.proposals import proposed_in_vain
from nemesis.checkers.causes.registrations import not_registered
from nemesis.checkers.causes.roles import role_not_taken, role_taken
from nemesis.checkers.causes.view import View
from nemesis.checkers.explain.tell import tell
from nemesis.checkers.explain.words import tp
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.znodes import StateChange
from nemesis.history.events import Kind

MANY_CUTS: Final = 3
"""Fewer truncations to the same end are ordinary."""
_ENDS: Final = (
    *(Kind.LOG_LOADED, Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER),
    *(Kind.APPEND, Kind.TRUNCATE),
)


def not_in_sync(view: View, state: StateChange, replica: int) -> Chain:
    """Return why a replica is not in the ISR of the state; empty if the events do not show it."""
    if not view.is_registered(replica):
        return not_registered(view, replica)
    return (
        role_not_taken(view, state, replica)
        or proposed_in_vain(view, state, replica)
        or _not_caught_up(view, state, replica)
    )


def _not_caught_up(view: View, state: StateChange, replica: int) -> Chain:
    """What the logs show of a follower that no proposal names."""
    taken = role_taken(view, state, replica)
    assert taken is not None
    leader = state.event.leader
    assert leader is not None
    own, leaders = _log_end(view, state, replica), _log_end(view, state, leader)
    if own is None or leaders is None:
        return []
    name = tp(state.event.topic, state.event.partition)
    chain = [Link(f"{view.ago(taken[1])}, {tell(taken[1])}", taken)]
    end, leaders_end = own[1].log_end_offset or 0, leaders[1].log_end_offset or 0
    if end < leaders_end:
        return [
            *chain,
            *_log_since(view, state, replica, own),
            Link(
                f"{view.ago(leaders[1])}, the log of leader {leader} reached {leaders_end}", leaders
            ),
            *_last_answer(view, state, replica, taken),
            expected(
                f"broker {replica} fetches offset {end} of {name} from broker {leader} and appends it; fetches that "
                "are answered without an error are not recorded"
            ),
        ]
    return [
        *chain,
        Link(f"its log ends at {end}, as that of leader {leader}", own),
        *_last_answer(view, state, replica, taken),
        expected(
            f"broker {replica} fetches, and leader {leader} proposes an ISR with it; which of the two is missing is "
            "not recorded"
        ),
    ]


def _last_answer(view: View, state: StateChange, replica: int, taken: Row) -> Chain:
    """What the leader answered a follower last, where it was another error than before."""
    answered = view.of_process(
        replica,
        Kind.FETCH_ANSWERED,
        since_ns=taken[1].time,
        topic=state.event.topic,
        partition=state.event.partition,
        peer=state.event.leader,
    )
    return [
        Link(f"{view.ago(row[1])}, {tell(row[1])}, the last change of that answer", row)
        for row in answered[-1:]
    ]


def _log_since(view: View, state: StateChange, replica: int, last: Row) -> Chain:
    """Since when the log of a replica ends where it does, and how often it was truncated to that end."""
    end = last[1].log_end_offset
    events = _log_ends(view, state, replica)
    equal = list(takewhile(lambda item: item[1].log_end_offset == end, reversed(events)))
    first, cuts = equal[-1], [item for item in equal if item[1].kind == Kind.TRUNCATE]
    link = Link(f"{view.ago(first[1])}, its log ended at {end}, and has not grown since", first)
    if len(cuts) < MANY_CUTS:
        return [link]
    text = f"it was truncated to {end} {len(cuts):,} times since, the last {view.ago(cuts[0][1])}"
    return [link, Link(text, cuts[0])]


def _log_end(view: View, state: StateChange, broker: int) -> Row | None:
    """The last event of the broker's process that states where its log ends."""
    ends = _log_ends(view, state, broker)
    return ends[-1] if ends else None


def _log_ends(view: View, state: StateChange, broker: int) -> list[Row]:
    """The events of the broker's process that state where its log ends; of its appends only the last."""
    return view.of_process(broker, *_ENDS, topic=state.event.topic, partition=state.event.partition)

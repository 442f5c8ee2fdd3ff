"""Why a broker has not taken its role: the leader or a follower of a partition in its leader epoch."""

from __future__ import annotations

from nemesis.checkers.causes.chain import Chain, Link, expected, untraced
from nemesis.checkers.causes.requests import LEADER_AND_ISR, Requests
from nemesis.checkers.causes.states import epoch_begun
from nemesis.checkers.causes.view import View
from nemesis.checkers.explain.tell import tell
from nemesis.checkers.explain.words import tp
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.znodes import StateChange
from nemesis.history.events import Event, Kind


def role_taken(view: View, state: StateChange, broker: int) -> Row | None:
    """Return the event with which the broker's last process took its role in the state's leader epoch."""
    is_leader = broker == state.event.leader
    kind = Kind.BECOME_LEADER if is_leader else Kind.BECOME_FOLLOWER
    taken = [
        (row, event)
        for row, event in view.of_process(
            broker, kind, topic=state.event.topic, partition=state.event.partition
        )
        if (event.leader_epoch or 0) >= (state.event.leader_epoch or 0)
    ]
    return taken[-1] if taken else None


def role_not_taken(view: View, state: StateChange, broker: int) -> Chain:
    """Return why a registered broker has not taken its role; empty if it has."""
    if role_taken(view, state, broker) is not None:
        return []
    if not view.traces(broker):
        return [untraced(broker)]
    name = tp(state.event.topic, state.event.partition)
    role = "the leader" if broker == state.event.leader else "a follower"
    since, begin = _due(view, state, broker)
    reason = [] if begin.row is not None and begin.row[0] == state.row else [begin]
    requests = Requests.since(view, LEADER_AND_ISR, broker, view.time_of(since[1]))
    fate = requests.fate(view, name)
    if fate is not None:
        return [*reason, *fate]
    first = requests.accepted[0]
    answers = requests.answers(view, state.event.topic, state.event.partition)
    unnamed = "" if answers else f". No LeaderAndIsr that changes {name} is recorded after that"
    before, epoch = _role_before(view, state, broker), state.event.leader_epoch
    due = (
        f"a write with a leader epoch above {epoch}. Broker {broker} already had another role in leader epoch {epoch}, "
        "and a broker ignores a state whose leader epoch is not higher"
        if _had_another_leader(before, state, broker)
        else f"broker {broker} becomes {role} of {name} in leader epoch {epoch}{unnamed}"
    )
    return [
        *reason,
        Link(
            f"{view.ago(first[1])}, broker {broker} answered the next LeaderAndIsr (the request to lead or follow) "
            f"of controller {first[1].peer} without an error, but did not become {role} of {name}",
            first,
        ),
        *answers,
        *_without_metadata(view, broker, first[1]),
        *before,
        expected(due),
    ]


def _due(view: View, state: StateChange, broker: int) -> tuple[Row, Link]:
    """From when on a LeaderAndIsr was due: the begin of the leader epoch, or a later registration of the broker."""
    begun = view.leader_epoch_begun(state)
    registration = view.registration(broker)
    assert registration is not None
    if registration.epoch > (begun.event.zxid or 0):
        row, event = registration.created
        text = (
            f"{view.ago(event)}, broker {broker} registered with broker epoch {registration.epoch}"
        )
        return (row, event), Link(text, (row, event))
    return (begun.row, begun.event), epoch_begun(view, state)


def _without_metadata(view: View, broker: int, accepted: Event) -> Chain:
    """The first metadata of the broker's process, if they came only after it had accepted a LeaderAndIsr."""
    updated = view.of_process(broker, Kind.METADATA_UPDATED)
    if not updated:
        return [Link(f"broker {broker} has applied no UpdateMetadata since its start")]
    if (updated[0][1].time, updated[0][1].seq) < (accepted.time, accepted.seq):
        return []
    text = f"broker {broker} applied its first UpdateMetadata only after that, so it did not know the leader's address"
    return [Link(text, updated[0])]


def _had_another_leader(before: Chain, state: StateChange, broker: int) -> bool:
    """Whether the broker took the role before under another leader than that of the state."""
    events = [link.row[1] for link in before if link.row is not None]
    leaders = {broker if event.kind == Kind.BECOME_LEADER else event.leader for event in events}
    return bool(leaders - {state.event.leader})


def _role_before(view: View, state: StateChange, broker: int) -> Chain:
    """The role that the broker's process had taken in the same leader epoch under another leader."""
    had = [
        item
        for item in view.of_process(
            broker,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            topic=state.event.topic,
            partition=state.event.partition,
        )
        if (item[1].leader_epoch or 0) >= (state.event.leader_epoch or 0)
    ]
    return [Link(f"{view.ago(had[-1][1])}, {tell(had[-1][1])}", had[-1])] if had else []

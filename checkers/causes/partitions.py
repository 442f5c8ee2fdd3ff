"""Why a partition is stuck: its last state, and the first thing about it that is not as it has to be.

In this order: it has a leader that is registered, the leader leads, every replica is in the ISR.
"""

from __future__ import annotations

from typing import Final

from nemesis.checkers.causes import metadata
from nemesis.checkers.causes.chain import Chain, Link, expected
from nemesis.checkers.causes.registrations import not_registered
from nemesis.checkers.causes.replicas import not_in_sync
from nemesis.checkers.causes.roles import role_not_taken
from nemesis.checkers.causes.states import last_write
from nemesis.checkers.causes.view import NO_LEADER, View
from nemesis.checkers.explain.tell import tell
from nemesis.checkers.explain.words import brokers, tp
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.znodes import StateChange
from nemesis.history.events import Kind

TOO_FEW: Final = "NOT_ENOUGH_REPLICAS"
MAX_REPLICAS: Final = 2
"""More replicas that are not in sync are explained by no further chains."""


def stuck(view: View, topic: str, partition: int, error: str) -> Chain:
    """Return why a partition is not what it has to be; empty if the events do not show it.

    ``error``: what a client got. Replicas that are not in sync explain only that there are too few of them.
    """
    state = view.state(topic, partition)
    if state is None:
        return []
    leader = state.event.leader
    if leader is None or leader == NO_LEADER or not view.is_registered(leader):
        chain = _not_elected(view, state)
    else:
        chain = (
            role_not_taken(view, state, leader)
            or _out_of_sync(view, state, error)
            or _metadata(view, topic, partition)
        )
    written = last_write(view, state)
    return [written, *(link for link in chain if link != written)] if chain else []


def _out_of_sync(view: View, state: StateChange, error: str) -> Chain:
    if error and not error.startswith(TOO_FEW):
        return []
    missing = sorted((state.assigned or frozenset()) - set(state.event.isr or ()))
    return [
        link for replica in missing[:MAX_REPLICAS] for link in not_in_sync(view, state, replica)
    ]


def _metadata(view: View, topic: str, partition: int) -> Chain:
    """Why a broker holds other metadata of a partition that is as it has to be."""
    for broker in sorted(view.brokers()):
        if metadata.differs(view, broker, topic, partition):
            return metadata.old_partition(view, broker, topic, partition)
    return []


def _not_elected(view: View, state: StateChange) -> Chain:
    """Why no registered broker leads the partition."""
    name, isr = tp(state.event.topic, state.event.partition), state.event.isr or []
    if not isr:
        return [
            *_previous_isr(view, state),
            Link(f"the ISR of {name} is empty, so only an unclean election can give it a leader"),
            expected("a state that keeps the last member of the ISR"),
        ]
    live = [broker for broker in isr if view.is_registered(broker)]
    if not live:
        return [link for broker in isr[:MAX_REPLICAS] for link in not_registered(view, broker)]
    return [
        *_registrations(view, live),
        *_controller(view),
        expected(f"the controller elects a leader of {name} from {brokers(live)}"),
    ]


def _previous_isr(view: View, state: StateChange) -> Chain:
    if state.previous is None or state.previous_row is None:
        return []
    text = f"{view.ago(state.previous)}, the state before was written, with ISR {state.previous.isr or []}"
    return [Link(text, (state.previous_row, state.previous))]


def _registrations(view: View, live: list[int]) -> Chain:
    chain: Chain = []
    for broker in live[:MAX_REPLICAS]:
        registration = view.registration(broker)
        if registration is not None:
            item = registration.created
            text = f"{view.ago(item[1])}, broker {broker}, which is in the ISR, registered"
            chain.append(Link(text, item))
    return chain


def _controller(view: View) -> Chain:
    """What the controller last knew of the live brokers."""
    elected = view.controller()
    if elected is None:
        return [Link("no broker reported that it was elected controller")]
    known: list[Row] = view.events(
        Kind.CONTROLLER_FAILOVER,
        Kind.BROKER_CHANGE_HANDLED,
        controller_epoch=elected.controller_epoch,
    )
    if not known:
        text = (
            f"controller {elected.node}, elected {view.ago(elected)}, has not finished its failover"
        )
        return [Link(text)]
    return [Link(f"{view.ago(known[-1][1])}, {tell(known[-1][1])}", known[-1])]

"""Why a broker's metadata are not what ZooKeeper has: the UpdateMetadata after the last change."""

from __future__ import annotations

from nemesis.checkers.causes.chain import Chain, Link, expected, untraced
from nemesis.checkers.causes.registrations import not_registered
from nemesis.checkers.causes.requests import UPDATE_METADATA, Requests
from nemesis.checkers.causes.states import last_write
from nemesis.checkers.causes.view import View
from nemesis.checkers.explain.tell import tell
from nemesis.checkers.explain.words import tp
from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Kind


def old_partition(view: View, broker: int, topic: str, partition: int) -> Chain:
    """Return why a broker's metadata of a partition differ from ZooKeeper; empty if the events do not show it."""
    registration = view.registration(broker)
    if registration is None or registration.deleted is not None:
        return not_registered(view, broker)
    if not view.traces(broker):
        return [untraced(broker)]
    state = view.state(topic, partition)
    if state is None:
        return []
    name = tp(topic, partition)
    due, link = (state.row, state.event), last_write(view, state)
    if registration.epoch > (state.event.zxid or 0):
        due, link = registration.created, _registered(view, broker, registration.created)
    requests = Requests.since(view, UPDATE_METADATA, broker, view.time_of(due[1]))
    known = view.of_process(broker, Kind.PARTITION_METADATA, topic=topic, partition=partition)
    held = _held(view, known)
    fate = requests.fate(view, name)
    if fate is not None:
        return [link, *held, *fate]
    first = requests.accepted[0]
    answers = requests.answers(view, topic, partition)
    unnamed = "" if answers else ". Not recorded: a later UpdateMetadata with another state of it"
    return [
        link,
        Link(
            f"{view.ago(first[1])}, broker {broker} accepted the first UpdateMetadata after that, from controller "
            f"{first[1].peer}",
            first,
        ),
        *answers,
        *(held or [Link(f"no UpdateMetadata has brought it the metadata of {name}")]),
        expected(
            f"broker {broker} stores leader {state.event.leader} and leader epoch {state.event.leader_epoch} for "
            f"{name}{unnamed}"
        ),
    ]


def differs(view: View, broker: int, topic: str, partition: int) -> bool:
    """Whether a broker last reported another leader or leader epoch of a partition than ZooKeeper has."""
    state = view.state(topic, partition)
    known = view.of_process(broker, Kind.PARTITION_METADATA, topic=topic, partition=partition)
    if state is None or not known:
        return False
    event = known[-1][1]
    return (event.leader, event.leader_epoch) != (state.event.leader, state.event.leader_epoch)


def old_cluster(view: View, broker: int) -> Chain:
    """Return why a broker knows other brokers or another controller than ZooKeeper."""
    if not view.is_registered(broker):
        return not_registered(view, broker)
    if not view.traces(broker):
        return [untraced(broker)]
    changes = list(view.registration_changes())
    due = changes[-1]
    changed, how = due[1].node, "deleted" if due[1].zk_op == "delete" else "created"
    link = Link(f"{view.ago(due[1])}, the registration of broker {changed} was {how}", due)
    requests = Requests.since(view, UPDATE_METADATA, broker, view.time_of(due[1]))
    fate = requests.fate(view, "the live brokers")
    return [] if fate is None else [link, *fate]


def _held(view: View, known: list[Row]) -> Chain:
    """What the broker last took over."""
    if not known:
        return []
    text = f"{view.ago(known[-1][1])}, {tell(known[-1][1])}; it has not changed it since"
    return [Link(text, known[-1])]


def _registered(view: View, broker: int, created: Row) -> Link:
    text = f"{view.ago(created[1])}, broker {broker} registered with broker epoch {created[1].zxid}"
    return Link(text, created)

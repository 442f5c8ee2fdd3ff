"""The smallest histories in which a coordinator of a group breaks its promises."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nemesis.checkers.breaks.events import TP, become_leader, history
from nemesis.history.events import Event

_OF_GROUP: Final = frozenset({"join-group", "sync-group", "heartbeat", "leave-group"})


def request(
    time: int, f: str, node: int, generation: int | None, *, member: str = "a", **columns: Any
) -> list[Event]:
    """A request of a member of group g and its answer, which has these columns too, one tick later."""
    answered = dict(columns)
    kind, taking = answered.pop("kind", "ok"), answered.pop("taking", 1)
    about: dict[str, Any] = {} if f in _OF_GROUP else dict(TP)
    about["partition"] = answered.pop("partition", about.get("partition"))
    about |= {"f": f, "op": time, "group": "g", "member": f"id-{member}", "node": node}
    asked: dict[str, Any] = {} if f == "join-group" else {"generation": generation}
    if f == "commit-offset":
        asked |= {name: answered[name] for name in ("offset", "leader_epoch", "value")}
    process = f"member-{member}"
    return [
        Event(time=time, process=process, kind="invoke", seq=time, **about, **asked),
        Event(
            time=time + taking,
            process=process,
            kind=kind,
            seq=time,
            **about,
            generation=generation,
            **answered,
        ),
    ]


def commit(
    time: int, node: int, generation: int, offset: int, *, value: int | None = None, **columns: Any
) -> list[Event]:
    """A commit of t-0 and its outcome; its number is the offset, unless ``value`` is given."""
    number = offset if value is None else value
    about: dict[str, Any] = {"offset": offset, "leader_epoch": 0, "value": number}
    return request(time, "commit-offset", node, generation, **{**about, **columns})


def fetched(
    time: int, node: int, offset: int, *, value: int | None = None, **columns: Any
) -> list[Event]:
    """A read of the committed offset of t-0; −1: nothing is committed."""
    number = offset if value is None else value
    epoch = -1 if offset < 0 else 0
    about: dict[str, Any] = {"offset": offset, "leader_epoch": epoch, "value": number}
    return request(time, "fetch-offset", node, 1, **{**about, **columns})


def joined(time: int, node: int, generation: int, **columns: Any) -> list[Event]:
    return request(time, "join-group", node, generation, count=0, **columns)


def synced(*parts: Event | list[Event], time: int = 0) -> list[Event]:
    """SyncGroups by which the members of these events got their assignments before, each from its broker."""
    events = [event for part in parts for event in (part if isinstance(part, list) else [part])]
    commits = (event for event in events if (event.kind, event.f) == ("invoke", "commit-offset"))
    memberships = {
        ((event.member or "").removeprefix("id-"), event.generation): event.node or 0
        for event in commits
    }
    return [
        event
        for (member, generation), node in memberships.items()
        for event in request(time, "sync-group", node, generation, member=member, taking=0)
    ]


def settled(*parts: Event | list[Event]) -> tuple[Event, ...]:
    """A history in which each member commits with its assignment."""
    return history(synced(*parts), *parts)


def static(events: list[Event]) -> list[Event]:
    """The same events of processes of one static member."""
    return [msgspec.structs.replace(event, instance="i") for event in events]


def without_member_id(events: list[Event]) -> list[Event]:
    """The same events of a process that has no member id when it asks."""
    return [
        msgspec.structs.replace(event, member=None) if event.kind == "invoke" else event
        for event in events
    ]


def loaded(time: int, node: int) -> Event:
    """A broker begins to lead a partition of committed offsets, and loads its groups."""
    offsets = {"topic": "__consumer_offsets", "topic_id": "offsets", "partition": 0}
    return become_leader(time, node, 1, 0, **offsets)


def owned(
    time: int, generation: int, *, member: str = "a", kind: str = "assigned", **columns: Any
) -> Event:
    """A member is assigned t-0, or gives it up."""
    identity: dict[str, Any] = {"group": "g", "member": f"id-{member}", "generation": generation}
    return Event(
        time=time, process=f"member-{member}", kind=kind, seq=time, **identity, **TP, **columns
    )


ONE_OWNER_PER_GENERATION: Final = (
    settled(
        owned(1, 1),
        commit(2, 1, 1, 5),
        owned(4, 1, member="b"),
        commit(5, 1, 1, 6, member="b"),
    ),
)
GENERATION_GROWS: Final = (settled(commit(1, 1, 2, 5), joined(3, 1, 1)),)
FENCED_MEMBER: Final = (
    settled(commit(1, 1, 2, 5), commit(3, 2, 1, 6, member="b")),
    settled(commit(1, 1, 2, 5), request(3, "sync-group", 1, 1, member="b")),
    settled(loaded(0, 1), commit(1, 1, 2, 5), request(3, "heartbeat", 1, 1, member="b")),
    history(loaded(0, 1), request(1, "leave-group", 1, 1), commit(3, 1, 1, 5)),
    history(
        static(request(0, "join-group", 1, 1, count=0)),
        static(request(2, "join-group", 1, 1, count=0, member="b")),
        static(request(4, "sync-group", 1, 1, member="b")),
        static(commit(6, 1, 1, 5, member="b")),
        static(commit(8, 2, 1, 6)),
    ),
    history(
        loaded(0, 1),
        static(request(1, "join-group", 1, 1, count=0)),
        static(request(3, "join-group", 1, 1, count=0, member="b")),
        static(request(5, "sync-group", 1, 1, member="b")),
        static(commit(7, 1, 1, 5)),
    ),
    history(
        static(request(1, "join-group", 1, 1, count=0)),
        without_member_id(static(request(3, "join-group", 1, 2, count=0))),
    ),
)
OFFSETS_READ_AS_COMMITTED: Final = (
    history(fetched(1, 1, 5)),
    history(commit(1, 1, 1, 5, kind="fail", error="ILLEGAL_GENERATION"), fetched(3, 1, 5)),
    history(commit(1, 1, 1, 5), fetched(3, 1, 6, value=5)),
    history(commit(1, 1, 1, 5), fetched(3, 1, -1)),
    history(commit(1, 1, 1, 5), commit(3, 1, 1, 6), fetched(5, 1, 5)),
)

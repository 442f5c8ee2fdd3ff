"""The smallest histories in which a coordinator of a group breaks its promises."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, history
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


def owned(
    time: int, generation: int, *, member: str = "a", kind: str = "assigned", **columns: Any
) -> Event:
    """A member is assigned t-0, or gives it up."""
    identity: dict[str, Any] = {"group": "g", "member": f"id-{member}", "generation": generation}
    return Event(
        time=time, process=f"member-{member}", kind=kind, seq=time, **identity, **TP, **columns
    )


ONE_OWNER_PER_GENERATION: Final = (
    history(
        owned(1, 1),
        commit(2, 1, 1, 5),
        owned(4, 1, member="b"),
        commit(5, 1, 1, 6, member="b"),
    ),
)
GENERATION_GROWS: Final = (history(commit(1, 1, 2, 5), joined(3, 1, 1)),)
FENCED_MEMBER: Final = (
    history(commit(1, 1, 2, 5), commit(3, 2, 1, 6, member="b")),
    history(commit(1, 1, 2, 5), request(3, "heartbeat", 1, 1, member="b")),
    history(commit(1, 1, 2, 5), request(3, "sync-group", 1, 1, member="b")),
)
OFFSETS_READ_AS_COMMITTED: Final = (
    history(fetched(1, 1, 5)),
    history(commit(1, 1, 1, 5, kind="fail", error="ILLEGAL_GENERATION"), fetched(3, 1, 5)),
    history(commit(1, 1, 1, 5), fetched(3, 1, 6, value=5)),
    history(commit(1, 1, 1, 5), fetched(3, 1, -1)),
    history(commit(1, 1, 1, 5), commit(3, 1, 1, 6), fetched(5, 1, 5)),
)

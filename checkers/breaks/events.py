"""Builders of tiny histories: one function for each kind of event, about partition ``t-0`` unless told otherwise.

Times are small numbers; ``history`` makes them milliseconds. Properties build their smallest breaking histories with
these, and tests build theirs.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from nemesis.history.events import Event

TP: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}
_NS_PER_MS: Final = 1_000_000


def history(*parts: Event | list[Event]) -> tuple[Event, ...]:
    """Return the events one after the other, their times taken for milliseconds, events of one time in this order."""
    flat = [event for part in parts for event in (part if isinstance(part, list) else [part])]
    numbers = count()
    spread = []
    for event in flat:
        columns = {name: getattr(event, name) for name in event.__struct_fields__}
        columns["time"] = event.time * _NS_PER_MS if event.time >= 0 else event.time
        columns["seq"] = event.seq if event.time < 0 else next(numbers)
        spread.append(Event(**columns))
    return tuple(spread)


def broker(time: int, node: int, kind: str, *, incarnation: int = 1, **columns: Any) -> Event:
    return Event(
        time=time,
        process=f"broker-{node}",
        node=node,
        incarnation=incarnation,
        kind=kind,
        seq=time,
        **columns,
    )


def started(time: int, node: int, *, unclean: bool) -> Event:
    """A broker starts and tells whether its configuration permits unclean elections."""
    settings = {"unclean_leader_election_enable": unclean, "min_insync_replicas": 1}
    return broker(time, node, "broker-started", **settings)


def states(change: str) -> dict[str, Any]:
    """Return the columns of a transition such as ``Online->Offline``."""
    before, after = change.split("->")
    return {"from_state": before, "to_state": after}


def znode(zxid: int, session: int, path: str, *, seq: int = 0, **columns: Any) -> Event:
    columns.setdefault("zk_op", "setData")
    return Event(
        time=-1,
        process="zookeeper",
        kind="znode",
        zxid=zxid,
        seq=seq,
        session=session,
        path=path,
        **columns,
    )


def grant(zxid: int, session: int, node: int, epoch: int) -> list[Event]:
    """A controller election as ZooKeeper commits it: /controller and /controller_epoch in one multi."""
    return [
        znode(zxid, session, "/controller", zk_op="create", controller_id=node),
        znode(zxid, session, "/controller_epoch", seq=1, controller_epoch=epoch),
    ]


def state(
    zxid: int,
    session: int,
    leader: int,
    leader_epoch: int,
    isr: list[int],
    *,
    epoch: int = 1,
    **columns: Any,
) -> Event:
    """A write of the state znode of t-0."""
    return znode(
        zxid,
        session,
        "/brokers/topics/t/partitions/0/state",
        leader=leader,
        leader_epoch=leader_epoch,
        isr=isr,
        controller_epoch=epoch,
        **{**TP, **columns},
    )


def append(
    time: int,
    node: int,
    epoch: int,
    offset: int,
    *,
    last: int | None = None,
    crc: int = 0,
    role: str = "follower",
    **columns: Any,
) -> Event:
    """An append to t-0 whose log then ends after its last offset."""
    end = offset if last is None else last
    return broker(
        time,
        node,
        "append",
        role=role,
        leader_epoch=epoch,
        offset=offset,
        last_offset=end,
        crc=crc,
        log_end_offset=end + 1,
        **{**TP, **columns},
    )


def marker(
    time: int, node: int, offset: int, *, first: int = -1, outcome: str = "commit", **columns: Any
) -> Event:
    """A marker of producer 7 in t-0, which ends a transaction that begins at ``first``."""
    about = {"role": "leader", "leader_epoch": 0, "producer_id": 7, "producer_epoch": 0}
    about |= {"coordinator_epoch": 0, "outcome": outcome, "first_offset": first, "offset": offset}
    return broker(time, node, "marker-appended", **{**about, **TP, **columns})


def become_leader(time: int, node: int, epoch: int, end: int, **columns: Any) -> Event:
    return broker(
        time,
        node,
        "become-leader",
        leader_epoch=epoch,
        log_end_offset=end,
        **{"high_watermark": 0, "log_start_offset": 0, **TP, **columns},
    )


def high_watermark(
    time: int, node: int, epoch: int, mark: int, isr: list[int], **columns: Any
) -> Event:
    return broker(
        time,
        node,
        "high-watermark",
        leader_epoch=epoch,
        high_watermark=mark,
        isr=isr,
        **{"maximal_isr": isr, "log_end_offset": mark, **TP, **columns},
    )


def truncate(time: int, node: int, end: int, **columns: Any) -> Event:
    return broker(time, node, "truncate", offset=end, log_end_offset=end, **{**TP, **columns})


def loaded(time: int, node: int, end: int, **columns: Any) -> Event:
    return broker(time, node, "log-loaded", log_end_offset=end, **{**TP, **columns})


def log_start(time: int, node: int, start: int, end: int, **columns: Any) -> Event:
    offsets = {"log_start_offset": start, "log_end_offset": end}
    return broker(time, node, "log-start-offset", **offsets, **{**TP, **columns})


def acknowledged(time: int, node: int, epoch: int, offset: int, **columns: Any) -> Event:
    return broker(
        time,
        node,
        "produce-acknowledged",
        leader_epoch=epoch,
        offset=offset,
        last_offset=offset,
        **{"acks": -1, "high_watermark": offset + 1, **TP, **columns},
    )


def client(time: int, process: str, kind: str, f: str, op: int, **columns: Any) -> Event:
    return Event(time=time, process=process, kind=kind, seq=time, f=f, op=op, **{**TP, **columns})


def send(
    time: int, value: int, outcome: str = "ok", *, process: str = "producer-0", **columns: Any
) -> list[Event]:
    """A send and its completion one tick later."""
    about = {"acks": columns.pop("acks", -1)} | {
        k: columns[k] for k in (*TP, "delivery", "producer_id") if k in columns
    }
    return [
        client(time, process, "invoke", "send", time, value=value, **about),
        client(time + 1, process, outcome, "send", time, value=value, **about | columns),
    ]


def poll(
    time: int,
    position: int,
    records: dict[int, int],
    *,
    process: str = "consumer-0",
    mark: int = 100,
    **columns: Any,
) -> list[Event]:
    """A poll that returned these records (offset → value)."""
    return [
        client(time, process, "invoke", "poll", time, offset=position),
        client(
            time + 1,
            process,
            "ok",
            "poll",
            time,
            offset=position,
            offsets=list(records),
            values=list(records.values()),
            high_watermark=mark,
            **columns,
        ),
    ]


def final(
    time: int, records: dict[int, int], *, mark: int | None = None, **columns: Any
) -> list[Event]:
    """A final reader that polls once from offset 0 and reaches (or misses) the high watermark."""
    end = max([-1, *records]) + 1
    return [
        *poll(time, 0, records, process="final-0", mark=end, **columns),
        Event(
            time=time + 2,
            process="final-0",
            kind="final-read",
            seq=time + 2,
            offset=end,
            high_watermark=end if mark is None else mark,
            error="NONE",
            **TP | {"topic_id": columns.get("topic_id", TP["topic_id"])},
        ),
    ]


def elected(time: int, zxid: int, leader: int, isr: list[int], **columns: Any) -> Event:
    about: dict[str, Any] = {
        "leader": leader,
        "leader_epoch": 1,
        "isr": isr,
        "strategy": "offline",
        "zxid": zxid,
    }
    about |= {"replicas": [1, 2, 3], "live": [1, 2, 3], "controller_epoch": 1}
    return broker(time, 1, "leader-elected", **TP, **(about | columns))


def harness(time: int, kind: str, **columns: Any) -> Event:
    return Event(time=time, process="harness", kind=kind, seq=time, **columns)


PERMITTED = started(0, 9, unclean=True)

"""Writing tiny histories, and judging them through the engine's inline path, cut anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa

from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Finding, Result, Verdict
from nemesis.checkers.framework.property import Check, Property
from nemesis.checkers.framework.segment import PROOF_ROW
from nemesis.history.events import Event
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.schema import ordered, table

TP: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}


def promised(name: str, check: type[Check]) -> Property:
    """Return a made-up property that the check of a test decides."""
    return Property(
        name=name, promise="It holds.", unknown="Nothing happened.", source="A test.", check=check
    )


def judge(
    checks: Check | Sequence[Check], events: Iterable[Event], cuts: Iterable[int] = ()
) -> dict[str, Result]:
    """Return the results by property, the proving events in the place of their row numbers."""
    return judge_rows(checks, ordered(table(events)), cuts)


def judge_rows(
    checks: Check | Sequence[Check], whole: pa.Table, cuts: Iterable[int] = ()
) -> dict[str, Result]:
    """As ``judge``, of rows in the order of a history."""
    edges = sorted({0, whole.num_rows, *(cut % (whole.num_rows + 1) for cut in cuts)})
    groups = [
        MemoryRowGroup(whole.slice(start, stop - start), start) for start, stop in pairwise(edges)
    ]
    results = run_checks(groups, [checks] if isinstance(checks, Check) else list(checks))

    proving = _rows(
        whole,
        {one[PROOF_ROW] for each in results for finding in each.findings for one in finding.events},
    )

    def explained(finding: Finding) -> Finding:
        proof = tuple(proving[one[PROOF_ROW]] for one in finding.events)
        return msgspec.structs.replace(finding, events=proof)

    return {
        result.property: msgspec.structs.replace(
            result, findings=tuple(map(explained, result.findings))
        )
        for result in results
    }


def _rows(whole: pa.Table, numbers: set[int]) -> dict[int, dict[str, Any]]:
    """What these events say, by their row numbers."""
    if not numbers:
        return {}
    wanted = sorted(numbers)
    return {
        number: {name: value for name, value in row.items() if value is not None}
        for number, row in zip(wanted, whole.take(wanted).to_pylist(), strict=True)
    }


def only(check: Check, events: Iterable[Event], name: str | None = None) -> Result:
    """Return the one result (of this name) after seeing that cutting the history anywhere changes nothing."""
    whole = ordered(table(events))
    wanted = name or check.name
    result = judge_rows(check, whole)[wanted]
    for cut in range(1, whole.num_rows):
        assert judge_rows(check, whole, [cut])[wanted] == result
    assert judge_rows(check, whole, range(whole.num_rows))[wanted] == result
    return result


def finding(
    name: str, key: str, sentence: str, *events: Event, verdict: Verdict = Verdict.INVALID
) -> Finding:
    return Finding(
        property=name,
        verdict=verdict,
        key=key,
        sentence=sentence,
        events=tuple(as_row(event) for event in events),
    )


def as_row(event: Event) -> dict[str, Any]:
    return {
        name: value
        for name in event.__struct_fields__
        if (value := getattr(event, name)) is not None
    }


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
    detail = f'{{"unclean.leader.election.enable":{str(unclean).lower()},"min.insync.replicas":1}}'
    return broker(time, node, "broker-started", detail=detail)


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


def become_leader(time: int, node: int, epoch: int, end: int, **columns: Any) -> Event:
    return broker(
        time,
        node,
        "become-leader",
        leader_epoch=epoch,
        log_end_offset=end,
        log_start_offset=0,
        **{"high_watermark": 0, **TP, **columns},
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
        k: columns[k] for k in (*TP, "role") if k in columns
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

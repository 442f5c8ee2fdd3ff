"""Builders of tiny histories of logs, of which only sends and polls are known: alone, or in transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from nemesis.checkers.breaks.events import TP
from nemesis.history.events import Event


def send(
    time: int, value: int, offset: int | None = None, kind: str = "ok", process: str = "0"
) -> Event:
    """The completion of a send; the history lacks its invocation."""
    return Event(
        time=time,
        process=process,
        kind=kind,
        op=time,
        f="send",
        value=value,
        offset=offset,
        **TP,
    )


def poll(time: int, *records: tuple[int, int], process: str = "1", kind: str = "ok") -> Event:
    """A poll that reports these records, each an offset and a value."""
    return Event(
        time=time,
        process=process,
        kind=kind,
        op=time,
        f="poll",
        offsets=[offset for offset, _ in records],
        values=[value for _, value in records],
        **TP,
    )


def poll_of(began: int, time: int, *records: tuple[int, int], process: str = "1") -> list[Event]:
    """A poll that reports these records, with its invocation."""
    invoke = Event(time=began, process=process, kind="invoke", op=time, f="poll", **TP)
    return [invoke, poll(time, *records, process=process)]


@dataclass(frozen=True)
class Sent:
    """A record that a transaction sends; ``offset``: where its acknowledgement places it."""

    log: str
    value: int
    offset: int | None


@dataclass(frozen=True)
class Polled:
    """What a transaction polls."""

    log: str
    records: Sequence[tuple[int, int]]
    """(offset, value)."""


@dataclass(frozen=True)
class Txn:
    """A transaction from ``began`` to ``ended``, in nanoseconds."""

    began: int
    ended: int
    parts: Sequence[Sent | Polled]
    process: str = "0"
    kind: str = "ok"


def transactions(*txns: Txn) -> list[Event]:
    """The events of transactions, as they are made of Jepsen's kafka workload."""
    result, ops = [], count()
    for txn in txns:
        for number, part in enumerate(txn.parts):
            about: dict[str, Any] = {"op": next(ops), "topic": part.log, "partition": 0}
            about |= {"process": txn.process, "part_of": f"txn#{number}"}
            if isinstance(part, Sent):
                about |= {"f": "send", "value": part.value}
                columns: dict[str, Any] = {"offset": part.offset}
            else:
                about["f"] = "poll"
                columns = {"offsets": [offset for offset, _ in part.records]}
                columns["values"] = [value for _, value in part.records]
            result.append(Event(kind="invoke", time=txn.began, **about))
            answer = columns if txn.kind == "ok" else {}
            result.append(Event(kind=txn.kind, time=txn.ended, **about, **answer))
    return result

"""Histories as ``benchmarks.porcupine_program`` takes them, made of the events that nemesis judges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.porcupine_program import NOTHING
from nemesis.history.events import Event, Kind


def calls_of(workload: str, events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the operations with the fields of ``model.go``; those that failed are left out."""
    begun: dict[int | None, Event] = {}
    ended: dict[int | None, Event] = {}
    for event in events:
        (begun if event.kind == Kind.INVOKE else ended)[event.op] = event
    pairs = [(invoke, ended.get(op)) for op, invoke in begun.items()]
    return [
        _call(workload, number, invoke, end)
        for number, (invoke, end) in enumerate(pairs)
        if end is None or end.kind != Kind.FAIL
    ]


def _call(workload: str, number: int, invoke: Event, end: Event | None) -> dict[str, Any]:
    is_known = end is not None and end.kind == Kind.OK
    said = end if end is not None and is_known else invoke
    call: dict[str, Any] = {
        "client": number,
        "call": invoke.time,
        "return": said.time,
        "f": invoke.f,
        "key": str(invoke.key),
        "unknown": not is_known,
    }
    if workload == "key-value":
        return {**call, "text": "".join(map(chr, said.values or ()))}
    value = NOTHING if said.value is None else said.value
    old, new = said.values or invoke.values or (NOTHING, value)
    return {**call, "old": old, "new": new, "read": value}

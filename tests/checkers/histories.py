"""Writing tiny histories, and judging them through the engine's inline path, cut anywhere."""

from __future__ import annotations

import json
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
from nemesis.history.sources import EventSource


def promised(name: str, check: type[Check]) -> Property:
    """Return a made-up property that the check of a test decides."""
    return Property(
        name=name,
        promise="It holds.",
        unknown="Nothing happened.",
        source="A test.",
        check=check,
        decided_from=frozenset(EventSource),
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
        {
            event[PROOF_ROW]
            for each in results
            for finding in each.findings
            for event in finding.events
        },
    )

    def explained(finding: Finding) -> Finding:
        proof = tuple(proving[event[PROOF_ROW]] for event in finding.events)
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


def power_cut(*last_in_isr: str) -> Event:
    """The intent of one, and the partitions whose last replica it strikes."""
    return Event(
        time=0,
        process="nemesis",
        kind="fault-invoke",
        seq=0,
        fault="power-cut",
        targets=["broker-1"],
        detail=json.dumps({"power": "off", "last_in_isr": last_in_isr}),
    )

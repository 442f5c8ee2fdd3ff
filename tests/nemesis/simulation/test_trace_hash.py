"""One hash stands for a trace, in every interpreter; two traces part at the first event that differs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.history.events import Event
from nemesis.simulation.trace_hash import LINES_HASHED_TOGETHER, TraceHash, first_difference

PINNED = "391dddc949942133afd1aa8aa4d6d4d5"


def trace(length: int) -> list[Event]:
    return [
        Event(
            time=n,
            process=f"broker-{n % 3 + 1}",
            kind="append",
            seq=n,
            topic="t",
            partition=0,
            offset=n,
            isr=[1, 2, 3],
        )
        for n in range(length)
    ]


def hashed(events: Sequence[Event]) -> str:
    line_by_line = TraceHash()
    for event in events:
        line_by_line.add(msgspec.json.encode(event))
    return line_by_line.hexdigest()


@pytest.mark.parametrize("length", [0, 1, 5, LINES_HASHED_TOGETHER, LINES_HASHED_TOGETHER + 1])
def test_lines_and_events_give_the_same_hash(length: int) -> None:
    together = TraceHash()
    together.add_events(trace(length))
    assert together.hexdigest() == hashed(trace(length))
    in_parts = TraceHash()
    in_parts.add_events(trace(length)[:2])
    in_parts.add_events(iter(trace(length)[2:]))
    assert in_parts.hexdigest() == hashed(trace(length))


def test_the_hash_is_the_same_in_every_interpreter() -> None:
    code = "from tests.nemesis.simulation.test_trace_hash import *; print(hashed(trace(9)))"
    for seed in ("0", "1"):
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout.strip() == PINNED
    assert hashed(trace(9)) == PINNED


def test_the_end_of_a_line_counts() -> None:
    first, other = TraceHash(), TraceHash()
    first.add(b"ab")
    first.add(b"c")
    other.add(b"a")
    other.add(b"bc")
    assert first.hexdigest() != other.hexdigest()


@given(st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_a_change_changes_the_hash_and_is_where_the_traces_part(
    length: int, at: int, leave_out: bool
) -> None:
    original = trace(length)
    changed = trace(length)
    if at < length and leave_out:
        del changed[at]
    elif at < length:
        changed[at].offset = -7
    result = first_difference(original, changed)
    if at >= length:
        assert result is None
        assert hashed(changed) == hashed(original)
    else:
        assert result is not None
        assert result.index == at
        assert hashed(changed) != hashed(original)


def test_a_difference_shows_both_lines_and_the_fields() -> None:
    changed = trace(3)
    changed[1].offset, changed[1].isr = 8, [1]
    result = first_difference(trace(3), changed)
    assert result is not None
    assert result.fields == ("isr", "offset")
    first, second = (msgspec.json.encode(events[1]).decode() for events in (trace(3), changed))
    assert str(result).splitlines() == [
        "event 1 (counted from 0) differs in isr, offset",
        f"  first:  {first}",
        f"  second: {second}",
    ]


def test_a_trace_that_ends_early_says_so() -> None:
    result = first_difference(trace(3), trace(2))
    assert result is not None
    assert (result.index, result.second, result.fields) == (2, None, ())
    assert "second: (the trace has ended)" in str(result)

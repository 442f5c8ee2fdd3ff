"""The columns that a file of JSON lines can have, from the kinds in it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.history import raw_lines
from nemesis.history.events import Event, Kind
from nemesis.history.schema import table
from nemesis.history.vocabulary.declaring import Declaration, declarations
from nemesis.history.vocabulary.occurring import columns_in


def _line(**columns: object) -> bytes:
    return msgspec.json.encode({"time": 1, "process": "p", "seq": 1, **columns}) + b"\n"


@pytest.mark.parametrize("declared", declarations(), ids=lambda item: f"{item.kind}-{item.f}")
def test_every_column_of_a_kind_that_occurs_is_named(declared: Declaration) -> None:
    """And none of a kind that does not occur: a file of this kind alone has no others."""
    function = {} if declared.f is None else {"f": declared.f}
    columns = columns_in(_line(kind=declared.kind.value, **function))
    assert set(declared.view.__struct_fields__) <= columns
    alike = {
        name
        for other in declarations()
        if (other.kind, other.f) == (declared.kind, declared.f)
        for name in other.view.__struct_fields__
    }
    assert columns == alike


def test_no_event_names_no_column() -> None:
    assert columns_in(b"") == frozenset()
    assert columns_in(_line(kind="not-a-kind")) == frozenset()


def test_a_column_that_its_kind_does_not_declare_is_read_all_the_same(tmp_path: Path) -> None:
    declared = Event(time=1, process="p", kind=Kind.PHASE.value, phase="faults")
    foreign = Event(time=2, process="p", kind=Kind.PHASE.value, high_watermark=7)
    for events in ([declared], [declared, foreign]):
        path = tmp_path / "harness.jsonl"
        path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
        (piece,) = raw_lines.byte_ranges(path)
        assert "high_watermark" not in columns_in(path.read_bytes())
        rows, problems = raw_lines.read(piece)
        assert rows.to_pylist() == table(events).to_pylist()
        assert problems == []

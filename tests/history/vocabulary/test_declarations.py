"""Each kind of event is declared once, and the flat record, the schema and the schema page follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import pytest

from nemesis.history.events import Event, Kind, marks, plain
from nemesis.history.recorder import Recorder
from nemesis.history.vocabulary import page
from nemesis.history.vocabulary.checking import CheckingRecorder, Vocabulary, WrongEventError
from nemesis.history.vocabulary.controller import Transition
from nemesis.history.vocabulary.declaring import OUR_CLIENTS, columns_of, declarations
from nemesis.history.vocabulary.faults import measurements
from nemesis.history.vocabulary.foreign import OtherOperation

HISTORY_PAGE = Path(__file__).parents[3] / "docs" / "history.md"
MOVED: dict[str, Any] = {
    "topic": "t",
    "partition": 0,
    "controller_epoch": 1,
    "from_state": "New",
    "to_state": "Online",
}


def recorder(lines: list[bytes]) -> Recorder:
    return CheckingRecorder(lines.append, process="broker-1", clock=lambda: 7, node=1)


def test_every_kind_is_declared_once_for_each_function_and_workload() -> None:
    named = [
        (declaration.kind, declaration.f, workload)
        for declaration in declarations()
        for workload in declaration.workloads
    ]
    assert len(named) == len(set(named))
    assert {declaration.kind for declaration in declarations()} == set(Kind)


def test_an_operation_is_declared_with_all_its_ends() -> None:
    ends: dict[tuple[str, str], set[Kind]] = {}
    for declaration in declarations():
        if declaration.f is not None:
            for workload in declaration.workloads:
                ends.setdefault((declaration.f, workload), set()).add(declaration.kind)
    operation = {Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO}
    assert [name for name, kinds in ends.items() if kinds != operation] == []


def test_a_declared_column_is_a_column_of_the_record_and_of_its_type() -> None:
    stored = get_type_hints(Event, include_extras=True)
    for declaration in declarations():
        for name, hint in get_type_hints(declaration.view, include_extras=True).items():
            assert name in stored, (declaration.view, name)
            assert (plain(hint), marks(hint)) == (plain(stored[name]), marks(stored[name])), name


def test_every_column_of_the_record_is_declared_by_some_kind() -> None:
    views = [declaration.view for declaration in declarations()]
    used = columns_of(*views, OtherOperation)
    assert set(Event.__struct_fields__) - set(used) == set()


def test_a_recorder_takes_an_event_as_it_is_declared() -> None:
    lines: list[bytes] = []
    event = recorder(lines).record(Kind.TRANSITION, **MOVED)
    assert (event.time, event.from_state, len(lines)) == (7, "New", 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "new"}, "unknown field `strategy`"),
        ({"from_state": None}, "Expected `str`, got `null`"),
        ({"partition": "0"}, "Expected `int`, got `str`"),
        ({"partition": True}, "Expected `int`, got `bool`"),
    ],
)
def test_a_recorder_rejects_a_column_that_the_kind_does_not_have(
    change: dict[str, Any], message: str
) -> None:
    lines: list[bytes] = []
    recording = recorder(lines)
    recording.record(Kind.TRANSITION, **MOVED)
    with pytest.raises(WrongEventError, match=message):
        recording.record(Kind.TRANSITION, **{**MOVED, **change})
    assert len(lines) == 1


def test_a_recorder_rejects_an_event_that_lacks_a_column() -> None:
    with pytest.raises(WrongEventError, match="missing required field `to_state`"):
        recorder([]).record(Kind.TRANSITION, **{k: v for k, v in MOVED.items() if k != "to_state"})


def test_an_operation_of_an_unknown_function_is_wrong_in_our_histories_alone() -> None:
    odd = {"time": 1, "process": "p", "kind": "ok", "f": "sing"}
    with pytest.raises(WrongEventError, match="ok of sing: expected a declared kind of event"):
        Vocabulary(OUR_CLIENTS).check(odd)
    Vocabulary("set").check({**odd, "original": "{:value nil}"})


def test_a_view_has_the_columns_of_its_kind() -> None:
    event = Event(time=1, process="broker-1", kind="transition", replica=3, **MOVED)
    moved = Transition.of(event)
    assert moved is not None
    assert (moved.replica, moved.from_state, moved.to_state, moved.error) == (
        3,
        "New",
        "Online",
        None,
    )


def test_an_event_that_lacks_a_required_column_has_no_view() -> None:
    assert Transition.of(Event(time=1, process="broker-1", kind="transition", topic="t")) is None


@pytest.mark.parametrize("detail", [None, "", "words", "[1]"])
def test_the_measurements_of_a_fault_are_empty_where_they_cannot_be_read(
    detail: str | None,
) -> None:
    assert measurements(detail) == {}
    assert measurements('{"lost": "it died"}') == {"lost": "it died"}


def test_the_schema_page_is_what_the_declarations_say() -> None:
    """``python -m nemesis.history.vocabulary.page docs/history.md`` writes it."""
    text = HISTORY_PAGE.read_text(encoding="utf-8")
    assert page.replaced(text) == text

"""Each way to break a property is explained step by step, from the events alone, and the page of them is current."""

from __future__ import annotations

from checkers import CHECKERS
from checkers.explain import REASONS, explain
from checkers.model import Finding, Verdict
from tests.checkers import smallest_breaks


def test_the_smallest_break_of_each_property_is_explained_as_the_page_says() -> None:
    """``python -m tests.checkers.smallest_breaks`` writes the page anew; read it before you commit it."""
    assert smallest_breaks.PAGE.read_text() == smallest_breaks.page()


def test_every_property_has_a_smallest_break_and_a_reason() -> None:
    judged = set(CHECKERS) - smallest_breaks.MEASURED
    assert set(smallest_breaks.BREAKS) == judged
    assert set(REASONS) == judged


def test_each_step_is_a_sentence_of_its_own() -> None:
    for name, found in smallest_breaks.findings():
        assert len(found.steps) > len(found.events), name
        assert len(set(found.steps)) == len(found.steps), found.steps
        for step in found.steps:
            assert step.endswith("."), step
            assert "None" not in step, step
            assert "  " not in step, step


def test_steps_that_a_check_gives_itself_are_left_as_they_are() -> None:
    event = {"time": 1, "process": "broker-1", "kind": "truncate", "row": 3}
    given = Finding(
        property="hw-grows",
        verdict=Verdict.INVALID,
        key="t-0",
        sentence="It fell.",
        events=(event,),
        steps=("It was higher.",),
    )
    assert explain(given) == ("It was higher.",)


def test_a_property_without_a_reason_has_its_events_told() -> None:
    event = {"time": 1, "process": "broker-1", "kind": "metadata-updated", "row": 3}
    given = Finding(
        property="of-somebody-else",
        verdict=Verdict.INVALID,
        key="t-0",
        sentence="It is so.",
        events=(event,),
    )
    assert explain(given) == ("broker-1 told metadata updated.",)


def test_operations_from_elsewhere_are_told_too() -> None:
    about = {"process": "client-1", "op": 4, "key": 3}
    events = (
        {"time": 1, "kind": "invoke", "f": "write", "value": 7, **about},
        {"time": 2_000_001, "kind": "info", "f": "write", "value": 7, "error": "timeout", **about},
        {"time": 3_000_001, "kind": "ok", "f": "read", "values": [7, 8], **about},
    )
    given = Finding(
        property="of-somebody-else",
        verdict=Verdict.UNKNOWN,
        key="object 3",
        sentence="It is so.",
        events=events,
    )
    assert explain(given) == (
        "client-1 asked for write of object 3 (value 7).",
        "2 ms later, what came of write of object 3 (value 7) by client-1 is unknown (timeout).",
        "1 ms later, client-1 was told that read of object 3 (values 7 and 8) had succeeded.",
    )

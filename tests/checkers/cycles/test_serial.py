"""A store that works is never convicted; the same history with one anomaly put in is, by name."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks.transactions import Micro, append, history, r, txn, w
from nemesis.checkers.cycles.check import ListAppend, RwRegister
from nemesis.checkers.cycles.models import ANOMALIES, MODELS
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.cycles.random_histories import events
from tests.checkers.cycles.serial import WANTED, commit
from tests.checkers.histories import judge

STRICT = MODELS["strict-serializable"]
KEY, OTHER = 100, 101
"""Keys that only the anomaly is about."""
LATE = 10_000
"""When everything else is over."""


@settings(max_examples=50)
@given(st.lists(WANTED, max_size=25), st.booleans(), st.lists(st.integers(0, 1000), max_size=2))
def test_a_store_that_works_is_never_convicted(wanted, lists, cuts) -> None:  # type: ignore[no-untyped-def]
    check = ListAppend(STRICT) if lists else RwRegister(STRICT)
    results = judge(check, events(commit(wanted, lists=lists)), cuts)
    assert [finding for result in results.values() for finding in result.findings] == []
    assert Verdict.INVALID not in {result.verdict for result in results.values()}


def at_once(*micro: list[Micro]) -> list[Event]:
    """Transactions late, all at the same time."""
    return history(*(txn(1000 + n, *item, index=(LATE, LATE + 50)) for n, item in enumerate(micro)))


def in_turn(*micro: list[Micro], process: str | None = None) -> list[Event]:
    """Transactions late, one after the other."""
    return history(
        *(
            txn(1000 + n, *item, index=(LATE + 20 * n, LATE + 20 * n + 10), process=process)
            for n, item in enumerate(micro)
        )
    )


def failed(events: list[Event], op: int) -> list[Event]:
    """The history, in which this transaction failed."""
    return [
        msgspec.structs.replace(event, kind="fail")
        if (event.op, event.kind) == (op, "ok")
        else event
        for event in events
    ]


BOTH: dict[str, Callable[[], list[Event]]] = {
    "G1a": lambda: failed(in_turn([w(KEY, 1)], [r(KEY, 1)]), 1000),
    "G1b": lambda: at_once([w(KEY, 1), w(KEY, 2)], [r(KEY, 1)]),
    "garbage-read": lambda: at_once([w(KEY, 1)], [r(KEY, 7)]),
    "internal": lambda: at_once([w(KEY, 1), r(KEY)]),
    "lost-update": lambda: at_once([r(KEY), w(KEY, 1)], [r(KEY), w(KEY, 2)]),
    "G1c": lambda: at_once([w(KEY, 1), r(OTHER, 2)], [w(OTHER, 2), r(KEY, 1)]),
    "G-single": lambda: at_once([w(KEY, 1), w(OTHER, 1)], [r(KEY, 1), r(OTHER)]),
    "G-nonadjacent": lambda: at_once(
        [w(KEY, 1)], [r(KEY, 1), r(OTHER)], [w(OTHER, 1)], [r(OTHER, 1), r(KEY)]
    ),
    "G2-item": lambda: at_once([r(KEY), w(OTHER, 1)], [r(OTHER), w(KEY, 1)]),
    "G1c-realtime": lambda: in_turn([r(KEY, 1)], [w(KEY, 1)]),
    "G-single-realtime": lambda: in_turn([w(KEY, 1)], [r(KEY)]),
    "G1c-process": lambda: in_turn([r(KEY, 1)], [w(KEY, 1)], process="late"),
    "G-single-process": lambda: in_turn([w(KEY, 1)], [r(KEY)], process="late"),
}
OF_LISTS: dict[str, Callable[[], list[Event]]] = {
    "G0": lambda: at_once(
        [append(KEY, 1), append(OTHER, 1)],
        [append(KEY, 2), append(OTHER, 2)],
        [r(KEY, 1, 2), r(OTHER, 2, 1)],
    ),
    "G0-realtime": lambda: in_turn([append(KEY, 1)], [append(KEY, 2)], [r(KEY, 2, 1)]),
    "dirty-update": lambda: failed(
        in_turn([append(KEY, 1)], [append(KEY, 2)], [r(KEY, 1, 2)]), 1000
    ),
    "incompatible-order": lambda: at_once(
        [append(KEY, 1)], [append(KEY, 2)], [r(KEY, 1, 2)], [r(KEY, 2)]
    ),
    "duplicate-elements": lambda: at_once([append(KEY, 1)], [r(KEY, 1, 1)]),
}
TOGETHER = {"lost-update": {"G2-item"}, "dirty-update": {"G1a"}}
"""What an anomaly brings with it, by its nature."""


@pytest.mark.parametrize(
    ("name", "is_list"),
    [*((name, False) for name in BOTH), *((name, True) for name in BOTH | OF_LISTS)],
)
@settings(max_examples=3)
@given(wanted=st.lists(WANTED, min_size=5, max_size=15))
def test_one_anomaly_in_a_history_of_a_store_that_works(name, is_list, wanted) -> None:  # type: ignore[no-untyped-def]
    spoilt = [*events(commit(wanted, lists=is_list)), *(BOTH | OF_LISTS)[name]()]
    results = judge(ListAppend(STRICT) if is_list else RwRegister(STRICT), spoilt)
    collected = {item for item, result in results.items() if result.finding_count}
    assert {name} <= collected <= {name} | TOGETHER.get(name, set())
    assert results[name].verdict is Verdict.INVALID


@pytest.mark.parametrize("name", ["G1a", "internal", "G1c", "G2-item", "G-single-process"])
def test_the_model_decides_whether_an_anomaly_is_a_violation(name: str) -> None:
    spoilt = BOTH[name]()
    for model in MODELS.values():
        result = judge(ListAppend(model), spoilt)[name]
        forbids = model.forbids(ANOMALIES[name])
        assert result.verdict is (Verdict.INVALID if forbids else Verdict.VALID)
        (finding,) = result.findings
        assert finding.sentence.endswith(f"The model {model.name} allows that.") is not forbids

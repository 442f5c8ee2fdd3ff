"""A property is one object: every list of properties derives from the registered ones, and each is complete."""

from __future__ import annotations

from itertools import chain

import pytest

from nemesis.checkers import CHECKERS, FOREIGN, property_named, select, select_foreign
from nemesis.checkers.framework.property import Property, property_names
from nemesis.checkers.pages import DOCS, PAGES, broken, broken_in

MEASURED = {"liveness"}
"""Properties that find nothing."""
FOREIGN_PROPERTIES = list(
    chain.from_iterable(
        check.properties() for workload in FOREIGN for check in select_foreign(workload)
    )
)


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_current(page: str) -> None:
    """``python -m nemesis.checkers.pages`` writes them; read the difference before you commit it."""
    assert (DOCS / page).read_text() == PAGES[page]()


def test_a_property_and_its_check_name_each_other() -> None:
    for registered in CHECKERS.values():
        assert registered in registered.check.properties()
    for check in select():
        assert all(CHECKERS[declared.name] is declared for declared in check.properties())


def test_each_check_is_made_once_and_in_the_order_of_reports() -> None:
    names = list(chain.from_iterable(property_names(check) for check in select()))
    assert names == list(CHECKERS)
    assert [type(check) for check in select(["unseen", "duplicate"])] == [CHECKERS["unseen"].check]


def test_every_property_that_can_be_broken_has_a_reason_and_smallest_breaks() -> None:
    assert {name for name, declared in CHECKERS.items() if not declared.breaks} == MEASURED
    assert {name for name, declared in CHECKERS.items() if declared.reason is None} == MEASURED
    assert [decided.name for decided in FOREIGN_PROPERTIES if not decided.breaks] == []


@pytest.mark.parametrize("decided", [*CHECKERS.values(), *FOREIGN_PROPERTIES])
def test_what_a_property_states_are_sentences(decided: Property) -> None:
    for sentence in (decided.promise, decided.unknown, decided.source):
        assert sentence.endswith(".")
        assert sentence[0].isupper()
    assert decided.unit
    assert decided.needs


@pytest.mark.parametrize(
    "decided",
    [*CHECKERS.values(), *chain.from_iterable(map(broken_in, FOREIGN))],
    ids=lambda decided: f"{decided.check.__name__}-{decided.name}",
)
def test_each_smallest_history_breaks_its_property_in_another_way(decided: Property) -> None:
    found = [
        (finding.sentence, finding.verdict, finding.key, finding.steps)
        for finding in broken(decided)
    ]
    assert len(set(found)) == len(found) == len(decided.breaks)


def test_a_property_is_found_by_its_name() -> None:
    assert property_named("hw-bounded") is CHECKERS["hw-bounded"]
    foreign = property_named("G-single-realtime")
    assert foreign is not None
    assert foreign.promise.startswith("No cycle with one read that missed a write, counting")
    assert property_named("no-such-thing") is None

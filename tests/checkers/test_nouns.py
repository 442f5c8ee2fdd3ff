"""The noun behind a count agrees with it."""

from __future__ import annotations

from itertools import chain

import pytest

from nemesis.checkers import CHECKERS, FOREIGN
from nemesis.checkers.foreign import decided_in
from nemesis.checkers.framework.nouns import noun_for
from nemesis.checkers.framework.property import Property


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("reads", "read"),
        ("dependencies", "dependency"),
        ("stored batches", "stored batch"),
        ("broker processes", "broker process"),
        ("records of transactions that were read", "record of transactions that were read"),
        ("turns of jobs", "turn of jobs"),
        ("terms of leaders and answers", "(terms of leaders and answers)"),
        ("polls, and answers in fetch sessions", "(polls, and answers in fetch sessions)"),
    ],
)
def test_one_has_the_singular(plural: str, singular: str) -> None:
    assert noun_for(1, plural) == singular
    assert {noun_for(count, plural) for count in (0, 2, 21)} == {plural}


@pytest.mark.parametrize(
    "decided", [*CHECKERS.values(), *chain.from_iterable(map(decided_in, FOREIGN))]
)
def test_one_of_what_a_property_counts_is_no_plural(decided: Property) -> None:
    assert noun_for(1, decided.unit) != decided.unit

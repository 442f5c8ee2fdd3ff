"""10,000 generated histories: in none is anything found, and in each the one anomaly put into it, under its name.

Each number makes one history: how long it is, what happens, which anomaly is put in and where it is cut into row groups
follow from it. ``make test`` judges so many that every anomaly is met twice, ``make nightly`` all the
others; a block fails with the numbers of the histories that are judged wrongly.
Unlike Hypothesis it visits every anomaly equally often, and long histories as often as short ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from nemesis.checkers import select
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.generated_histories import (
    HISTORIES,
    INJECTIONS,
    blocks,
    correct_history,
    spoiled_history,
)
from tests.checkers.histories import judge
from tests.checkers.honest_histories import JUDGED

BY_DAY = 210


def judged(number: int, events: list[Event], names: Sequence[str]) -> dict[str, Result]:
    rng = Random(f"cuts {number}")
    return judge(select(names), events, [rng.randrange(10_000) for _ in range(rng.randrange(4))])


def misjudged(number: int) -> str | None:
    """What is wrong with the verdicts of this history, without and with its anomaly."""
    for name, result in judged(number, correct_history(number), JUDGED).items():
        if result.findings or result.verdict is not Verdict.VALID:
            said = [finding.sentence for finding in result.findings]
            return f"{number}: {name} is {result.verdict} of a correct history: {said}"
    name, spoil, events = spoiled_history(number)
    result = judged(number, events, [name])[name]
    due = Verdict.VALID if name == "duplicate" else Verdict.INVALID
    if not result.findings or result.verdict is not due:
        return f"{number}: {name} is {result.verdict} of a history in which {spoil.__name__}"
    return None


@pytest.mark.parametrize("numbers", blocks(0, BY_DAY), ids=str)
def test_the_first(numbers: range) -> None:
    assert [wrong for number in numbers if (wrong := misjudged(number))] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("numbers", blocks(BY_DAY, HISTORIES), ids=str)
def test_ten_thousand(numbers: range) -> None:
    assert [wrong for number in numbers if (wrong := misjudged(number))] == []


def test_every_anomaly_gets_into_the_first_twice() -> None:
    met = Counter(spoiled_history(number)[1].__name__ for number in range(BY_DAY))
    assert set(met) == {spoil.__name__ for _, spoil in INJECTIONS}
    assert min(met.values()) >= 2

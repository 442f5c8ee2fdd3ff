"""Random small histories of objects, right and wrong as chance has it, to be compared with every order of them.

Each operation has its effect at a moment of its own on an object that is correct. Then chance changes some answers,
so that histories are near the border between right and wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.framework.property import Check
from tests.checkers.histories import judge
from tests.checkers.linearizable.objects import Apply, has_order

OPERATIONS = 7
OUTCOMES = ("ok",) * 8 + ("info", "none", "fail", "fail")
LONGEST = (3, 8, 20)
"""From the moment of an operation to its ends, in nanoseconds; moments are 10 apart."""
CHANGED = (0, 1, 2, 3)
"""How many calls are changed."""


@dataclass(frozen=True, slots=True)
class Model:
    """An object of one kind: what its checks have to agree with."""

    check: Callable[[], Check]
    initial: Hashable
    apply: Apply
    """The states after a call in a state, none if its answer is wrong there."""
    ask: Callable[[Random, int], Call]
    """A call without an answer, by the number of the call."""
    answer: Callable[[Any, Call], Call]
    """The call with the answer that it gets in a state."""
    change: Callable[[Random, Call], Call]
    """The call with another answer, or the same."""
    steps: Callable[[Sequence[Call]], list[Call]] = list
    """The calls as the steps of which an order is searched."""
    first: Hashable = None
    """The state before all steps, ..."""
    step: Apply | None = None
    """... and those after a step; None: the states of calls."""

    def has_order(self, calls: Sequence[Call]) -> bool:
        """Whether some order of the steps explains the calls."""
        if self.step is None:
            return has_order(self.steps(calls), self.initial, self.apply)
        return has_order(self.steps(calls), self.first, self.step)


def random_calls(model: Model, rng: Random) -> list[Call]:
    """Return a history; what failed or is in doubt may have had its effect or not."""
    state = model.initial
    calls: list[Call] = []
    longest = rng.choice(LONGEST)
    for number in range(rng.randint(2, OPERATIONS)):
        instant = 100 + 10 * number
        asked = model.ask(rng, number)
        start, finish = instant - rng.randint(0, longest), instant + rng.randint(0, longest)
        outcome = rng.choice(OUTCOMES)
        call = model.answer(state, replace(asked, start=start, finish=finish, outcome=outcome))
        if outcome == "ok" or (outcome != "fail" and rng.random() < 0.5):
            certain = replace(call, outcome="ok")
            state = next(iter(model.apply(state, certain)), state)
        calls.append(call)
    answered = [index for index, call in enumerate(calls) if model.change(rng, call) != call]
    for index in rng.sample(answered, min(len(answered), rng.choice(CHANGED))):
        calls[index] = model.change(rng, calls[index])
    return calls


def disagreements(model: Model, seeds: range) -> Iterator[str]:
    """Yield the histories whose verdict is not that of trying out every order."""
    for seed in seeds:
        calls = random_calls(model, Random(seed))
        if not all(call.outcome == "fail" for call in calls):
            is_right = model.has_order(calls)
            results = judge(model.check(), events(*calls)).values()
            is_convicted = any(result.verdict is Verdict.INVALID for result in results)
            if is_right == is_convicted:
                yield f"seed {seed}, an order {'exists' if is_right else 'is missing'}: {calls}"

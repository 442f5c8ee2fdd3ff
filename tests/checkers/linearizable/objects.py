"""Operations on objects of any kind: every order of them tried out, and what they break."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.property import Check
from tests.checkers.histories import judge

Apply = Callable[[Hashable, Call], Iterable[Hashable]]
KEYS = (1, 2)


def has_order(
    calls: Sequence[Call],
    initial: Hashable,
    apply: Apply,
    is_right: Callable[[Hashable], bool] = lambda _: True,
) -> bool:
    """Whether some order explains all, by trying out each; those in doubt may have their effect late or never.

    ``is_right``: whether an order may end in a state.
    """
    tried: set[tuple[tuple[int, ...], Hashable]] = set()

    def goes_on(left: tuple[int, ...], state: Hashable) -> bool:
        if (left, state) in tried:
            return False
        tried.add((left, state))
        due = min(
            (calls[n].finish or 0 for n in left if calls[n].outcome == "ok"), default=float("inf")
        )
        if due == float("inf") and is_right(state):
            return True
        return any(
            goes_on(tuple(other for other in left if other != n), after)
            for n in left
            if calls[n].start <= due
            for after in apply(state, calls[n])
        )

    return goes_on(tuple(n for n, call in enumerate(calls) if call.outcome != "fail"), initial)


@dataclass(frozen=True, slots=True)
class Drawn:
    """When and on what the next operation of a true history acts; ``held``: what its object holds at its moment."""

    number: int
    start: int
    finish: int
    key: int
    held: list[int]


@st.composite
def true_histories(
    draw: st.DrawFn, step: Callable[[st.DrawFn, Drawn], Call], last: Callable[..., Call]
) -> list[Call]:
    """Collections whose operations have their effect at a moment of their own inside them; ``last`` returns all."""
    held: dict[int, list[int]] = {key: [] for key in KEYS}
    calls = []
    for number in range(draw(st.integers(2, 20))):
        instant = 100 + 10 * number
        start, finish = instant - draw(st.integers(0, 60)), instant + draw(st.integers(0, 60))
        key = draw(st.sampled_from(KEYS))
        calls.append(step(draw, Drawn(number, start, finish, key, held[key])))
    return calls + [last(1000, 1001, *values, key=key) for key, values in held.items()]


def findings_of(check: Check, calls: Iterable[Call]) -> list[str]:
    """Return the sentences of all findings."""
    results = judge(check, events(*calls))
    return [finding.sentence for result in results.values() for finding in result.findings]


def broken(check: Check, *calls: Call) -> dict[str, int]:
    """Return the properties that the calls break, with the number of findings of each."""
    return {
        name: result.finding_count
        for name, result in judge(check, events(*calls)).items()
        if result.verdict == "invalid"
    }

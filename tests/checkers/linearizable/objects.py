"""Operations on objects of any kind as events, and trying out every order of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from nemesis.checkers.framework.property import Check
from nemesis.history.events import Event
from tests.checkers.histories import judge

Apply = Callable[[Hashable, "Call"], Iterable[Hashable]]
KEYS = (1, 2)


@dataclass(frozen=True, slots=True)
class Call:
    """One operation. ``values`` are those of its invocation, ``answer`` what its ``ok`` adds to it."""

    f: str
    start: int
    finish: int | None
    outcome: str = "ok"
    """``ok``, ``fail``, ``info``, or ``none`` if no completion was recorded."""
    value: int | None = None
    values: tuple[int, ...] | None = None
    key: int | None = None

    @property
    def is_over(self) -> bool:
        return self.outcome in ("ok", "fail")


def events(*calls: Call) -> list[Event]:
    """Return the invocations and completions, each call by a process of its own."""
    collected = []
    for number, call in enumerate(calls):
        common: dict[str, Any] = {"process": f"client-{number}", "op": number, "f": call.f}
        is_look = call.f in ("read", "dequeue", "drain")
        stated: dict[str, Any] = {
            "value": call.value,
            "values": None if call.values is None else list(call.values),
        }
        said = {} if is_look else stated
        collected.append(Event(time=call.start, kind="invoke", key=call.key, **common, **said))
        if call.outcome != "none":
            index = call.start + 1 if call.finish is None else call.finish
            answer = stated if call.outcome == "ok" else said
            collected.append(
                Event(time=index, kind=call.outcome, seq=1, key=call.key, **common, **answer)
            )
    return collected


def has_order(calls: Sequence[Call], initial: Hashable, apply: Apply) -> bool:
    """Whether some order explains all, by trying out each; those in doubt may have their effect late or never."""
    return _goes_on([call for call in calls if call.outcome != "fail"], initial, apply)


def _goes_on(left: list[Call], state: Hashable, apply: Apply) -> bool:
    due = min((call.finish or 0 for call in left if call.outcome == "ok"), default=None)
    if due is None:
        return True
    return any(
        _goes_on(left[:index] + left[index + 1 :], after, apply)
        for index, call in enumerate(left)
        if call.start <= due
        for after in apply(state, call)
    )


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

"""Operations on objects of any kind as events, and trying out every order of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nemesis.history.events import Event

Apply = Callable[[Hashable, "Call"], Iterable[Hashable]]


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

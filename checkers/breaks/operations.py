"""Builders of tiny histories of objects: an operation becomes its invocation and its completion.

Foreign workloads state their smallest breaking histories with these, and tests build theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nemesis.history.events import Event


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
    micro_operations: tuple[int, ...] | None = None

    @property
    def is_over(self) -> bool:
        return self.outcome in ("ok", "fail")


def events(*calls: Call) -> list[Event]:
    """Return the invocations and completions, each call by a process of its own; times are nanoseconds."""
    collected = []
    for number, call in enumerate(calls):
        common: dict[str, Any] = {"process": f"client-{number}", "op": number, "f": call.f}
        is_look = call.f in ("read", "final-read", "dequeue", "drain", "generate", "get", "inc")
        stated: dict[str, Any] = {
            "value": call.value,
            "values": None if call.values is None else list(call.values),
            "micro_operations": None
            if call.micro_operations is None
            else list(call.micro_operations),
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

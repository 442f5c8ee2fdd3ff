"""Findings about objects, in words: which operation it was, when, and why it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.linearizable.object_operations import ALWAYS, NEVER, NO_ROW, UNSET, Operations
from nemesis.checkers.linearizable.search import Effect, GaveUp, Misfit, State

MAX_LISTED: Final = 4
"""How many operations or states a finding lists one by one, at most."""


def key_name(key: int) -> str:
    """How an object is written: ``key 7``; the only one of a history without keys is ``the object``."""
    return "the object" if key == UNSET else f"key {key}"


def value_name(value: int | None) -> str:
    return "nil" if value == UNSET else str(value)


def when(operations: Operations, position: int) -> str:
    """From when to when an operation was under way."""
    start, finish = int(operations.start[position]), int(operations.finish[position])
    begun = "from an unknown time" if start == ALWAYS else f"from {start:,} ns"
    return f"{begun}, never seen to end" if finish == NEVER else f"{begun} to {finish:,} ns"


def rows(operations: Operations, *positions: int | None) -> list[int]:
    """The rows of these operations, in history order, each once."""
    row_numbers = {
        int(row)
        for position in positions
        if position is not None
        for row in (operations.invoked[position], operations.completed[position])
        if row != NO_ROW
    }
    return sorted(row_numbers)


def unpairable(name: str, row: int) -> Finding:
    sentence = "Two events begin or end the same operation, so it is not known which belongs to it."
    return finding(name, "the history", sentence, row, verdict=Verdict.UNKNOWN)


def misfit(
    name: str,
    operations: Operations,
    effects: Sequence[Any],
    search_result: Misfit,
    state_name: Callable[[State], str],
    name_of: Callable[[Any], str] | None = None,
) -> Finding:
    """An operation that fits into no order with those before it. ``name_of`` names effects, which are of any kind."""
    name_of = name_of or effect_name
    key = key_name(int(operations.key[search_result.position]))
    operation_name = name_of(effects[search_result.position])
    names = [state_name(state) for state in search_result.states[:MAX_LISTED]]
    states = " or ".join([*names, "more"] if len(search_result.states) > MAX_LISTED else names)
    sentence = (
        f"{operation_name} of {key} fits into no order with the operations that ended before it"
    )
    sentence += f": it was {states} then." if search_result.states else "."
    before = (
        "1 operation" if search_result.placed == 1 else f"{search_result.placed or 'No'} operations"
    )
    ordered = ", and can be put into an order" if search_result.placed else ""
    steps = [f"{before} ended before it{ordered}."]
    if search_result.last_placed is not None:
        last = name_of(effects[search_result.last_placed])
        steps.append(
            f"The last of them to change it was {last} ({when(operations, search_result.last_placed)})."
        )
    steps += [
        f"{name_of(effects[position])} ({when(operations, position)}) may have happened or not."
        for position in search_result.open[:MAX_LISTED]
    ]
    if len(search_result.open) > MAX_LISTED:
        steps.append(
            f"So may {len(search_result.open) - MAX_LISTED} others that were under way or in doubt."
        )
    if search_result.states:
        steps.append(f"Whatever of that happened, {key} was {states} when {operation_name} ended.")
    steps.append(
        f"{operation_name} ({when(operations, search_result.position)}) needs something else, but succeeded."
    )
    proof = rows(
        operations,
        search_result.last_placed,
        *search_result.open[:MAX_LISTED],
        search_result.position,
    )
    return finding(name, key, sentence, *proof, steps=steps)


def gave_up(name: str, operations: Operations, search_result: GaveUp, limit: int) -> Finding:
    """The bound of the search was reached."""
    key = key_name(int(operations.key[search_result.position]))
    sentence = (
        f"{key} is undecided: the search gave up after {limit:,} configurations, when {search_result.placed} of its "
        "operations had been put into an order."
    )
    proof = rows(operations, search_result.position)
    return finding(name, key, sentence, *proof, verdict=Verdict.UNKNOWN)


def effect_name(effect: Effect) -> str:
    """How an operation is written: ``write 3``, ``cas 3 → 4``, ``acquire``."""
    if effect.f == "cas":
        return f"cas {value_name(effect.needs)} → {value_name(effect.gives)}"
    if effect.f in ("read", "write"):
        return f"{effect.f} {value_name(effect.gives)}"
    return effect.f

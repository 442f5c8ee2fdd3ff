"""Findings about objects, in words: which operation it was, when, and why it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.linearizable.object_operations import ALWAYS, NEVER, NO_ROW, UNSET, Operations
from nemesis.checkers.linearizable.search import Effect, GaveUp, Misfit, State

TOLD: Final = 4
"""Of many operations or states so many are told one by one."""


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
    found = {
        int(row)
        for position in positions
        if position is not None
        for row in (operations.invoked[position], operations.completed[position])
        if row != NO_ROW
    }
    return sorted(found)


def unpairable(name: str, row: int) -> Finding:
    sentence = "Two events begin or end the same operation, so it is not known which belongs to it."
    return finding(name, "the history", sentence, row, verdict=Verdict.UNKNOWN)


def misfit(
    name: str,
    operations: Operations,
    effects: list[Effect],
    found: Misfit,
    state_name: Callable[[State], str],
) -> Finding:
    """An operation that fits into no order with those before it."""
    key = key_name(int(operations.key[found.position]))
    what = effect_name(effects[found.position])
    names = [state_name(state) for state in found.states[:TOLD]]
    states = " or ".join([*names, "more"] if len(found.states) > TOLD else names)
    sentence = f"{what} of {key} fits into no order with the operations that ended before it"
    sentence += f": it was {states} then." if found.states else "."
    before = "1 operation" if found.placed == 1 else f"{found.placed or 'No'} operations"
    ordered = ", and can be put into an order" if found.placed else ""
    steps = [f"{before} ended before it{ordered}."]
    if found.last_placed is not None:
        last = effect_name(effects[found.last_placed])
        steps.append(
            f"The last of them to change it was {last} ({when(operations, found.last_placed)})."
        )
    steps += [
        f"{effect_name(effects[position])} ({when(operations, position)}) may have happened or not."
        for position in found.open[:TOLD]
    ]
    if len(found.open) > TOLD:
        steps.append(f"So may {len(found.open) - TOLD} others that were under way or in doubt.")
    if found.states:
        steps.append(f"Whatever of that happened, {key} was {states} when {what} ended.")
    steps.append(
        f"{what} ({when(operations, found.position)}) needs something else, but succeeded."
    )
    proof = rows(operations, found.last_placed, *found.open[:TOLD], found.position)
    return finding(name, key, sentence, *proof, steps=steps)


def gave_up(name: str, operations: Operations, found: GaveUp, limit: int) -> Finding:
    """The bound of the search was reached."""
    key = key_name(int(operations.key[found.position]))
    sentence = (
        f"{key} is undecided: the search gave up after {limit:,} configurations, when {found.placed} of its operations "
        "had been put into an order."
    )
    proof = rows(operations, found.position)
    return finding(name, key, sentence, *proof, verdict=Verdict.UNKNOWN)


def effect_name(effect: Effect) -> str:
    """How an operation is written: ``write 3``, ``cas 3 → 4``, ``acquire``."""
    if effect.f == "cas":
        return f"cas {value_name(effect.needs)} → {value_name(effect.gives)}"
    if effect.f in ("read", "write"):
        return f"{effect.f} {value_name(effect.gives)}"
    return effect.f

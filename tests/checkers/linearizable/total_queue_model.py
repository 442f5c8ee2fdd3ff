"""A queue that delivers at least once, in any order: which random histories some fate of every value explains.

From the definition: each copy of a value that was enqueued is in the queue until an operation takes it. When the queue
is empty, all copies that had been enqueued have been taken: by an operation that returned the value, at any time, as a
delivery may be late and may be repeated; or by one of unknown outcome. A dequeue takes one value at most, a drain any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random

from nemesis.checkers.breaks.operations import Call

KEYS = (None, 1)
OUTCOMES = ("ok",) * 8 + ("fail", "info", "none")
FINAL = 0.8
"""How likely a history ends with drains."""
OFF = 0.1
"""How likely a dequeue returns something else than the queue has."""


def random_queue(rng: Random) -> list[Call]:
    """Return a few operations on one queue or two; what fails or is in doubt has had its effect or not."""
    held: dict[int | None, list[int]] = {key: [] for key in KEYS}
    keys = KEYS[: rng.choice([1, 1, 2])]
    calls = []
    for number in range(rng.randint(3, 9)):
        instant = 100 + 10 * number
        outcome = rng.choice(OUTCOMES)
        key = rng.choice(keys)
        call = Call(
            rng.choice(["enqueue", "enqueue", "enqueue", "dequeue", "dequeue", "drain"]),
            instant - rng.randint(0, 12),
            instant + rng.randint(0, 12),
            outcome,
            key=key,
        )
        happens = outcome == "ok" or (outcome != "fail" and rng.random() < 0.5)
        calls.append(_carried_out(rng, call, held[key], happens=happens))
    if rng.random() < FINAL:
        calls += [Call("drain", 400, 401, values=_most(rng, held[key]), key=key) for key in keys]
    return calls


def _most(rng: Random, held: list[int]) -> tuple[int, ...]:
    """Return the values of a queue, seldom without the first."""
    return tuple(held[rng.random() < OFF :])


def _carried_out(rng: Random, call: Call, held: list[int], *, happens: bool) -> Call:
    if call.f == "enqueue":
        value = rng.randint(0, 3)
        held += [value] * happens
        return replace(call, value=value)
    if call.f == "drain":
        values = _most(rng, held)
        if happens:
            held.clear()
        return replace(call, values=values)
    if rng.random() < OFF:
        return replace(call, value=rng.choice([None, 0, 1, 2, 3]))
    if not held:
        return call
    position = rng.randrange(len(held))
    value = held[position]
    if happens and rng.random() > OFF:
        held.pop(position)
    return replace(call, value=value)


def is_explained(calls: Sequence[Call]) -> bool:
    """Whether nothing is lost or unexpected, for some choice of what the operations in doubt took."""
    return all(
        _is_expected(own) and any(_loses_nothing(own, taken) for taken in _fates(own))
        for own in ([call for call in calls if call.key == key] for key in KEYS)
    )


def _returned(calls: Sequence[Call]) -> list[tuple[int, Call]]:
    returned = []
    for call in calls:
        if call.f != "enqueue" and call.outcome == "ok":
            values = call.values if call.f == "drain" else (call.value,)
            returned += [(value, call) for value in values or () if value is not None]
    return returned


def _is_expected(calls: Sequence[Call]) -> bool:
    tried = [call for call in calls if call.f == "enqueue" and call.outcome != "fail"]
    return all(
        any(put.value == value and put.start <= (call.finish or 0) for put in tried)
        for value, call in _returned(calls)
    )


def _fates(calls: Sequence[Call]) -> Iterator[Counter[int]]:
    """Yield each multiset of values that the operations in doubt may have taken."""
    puts = [call.value or 0 for call in calls if call.f == "enqueue" and call.outcome != "fail"]
    in_doubt = [call.f for call in calls if call.outcome in ("info", "none")]
    if "drain" in in_doubt:
        yield Counter(puts)
        return
    takers = in_doubt.count("dequeue")
    for taken in product([None, *sorted(set(puts))], repeat=takers):
        yield Counter(value for value in taken if value is not None)


def _loses_nothing(calls: Sequence[Call], in_doubt: Counter[int]) -> bool:
    taken = Counter(value for value, _ in _returned(calls)) + in_doubt
    for look in calls:
        is_empty = look.f == "drain" or (look.f == "dequeue" and look.value is None)
        if is_empty and look.outcome == "ok":
            before = Counter(
                call.value or 0
                for call in calls
                if call.f == "enqueue" and call.outcome == "ok" and (call.finish or 0) < look.start
            )
            if before - taken:
                return False
    return True

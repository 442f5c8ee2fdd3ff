"""A set whose elements may be visible late: which random histories some order of each element's operations explains.

From the definition: an element is known from its add on, or from a read that returned it. It is lost if the last read
lacks it after that. A history is right if each element by itself has an order of its adds and of all reads in which it
is not lost, and in which a read that returned it comes after an add. No read returns an element twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from random import Random

from nemesis.checkers.breaks.operations import Call
from tests.checkers.linearizable.objects import has_order

OUTCOMES = ("ok",) * 8 + ("fail", "info", "none")
LATE = (0.0, 0.1, 0.3)
"""How likely a read lacks an element that is there."""
FINAL = 0.7
"""How likely a history ends with a read."""


def random_set(rng: Random) -> list[Call]:
    """Return a few adds and reads of one set."""
    held: set[int] = set()
    calls = []
    late = rng.choice(LATE)
    length = rng.choice([3, 12, 30])
    for number in range(rng.randint(2, 7)):
        instant = 100 + 10 * number
        outcome = rng.choice(OUTCOMES)
        call = Call(
            rng.choice(["add", "read"]),
            instant - rng.randint(0, length),
            instant + rng.randint(0, length),
            outcome,
        )
        if call.f == "add":
            value = rng.randint(0, 3)
            held |= {value} if outcome == "ok" or (outcome != "fail" and number % 2) else set()
            calls.append(replace(call, value=value))
            continue
        values = [value for value in sorted(held) if rng.random() >= late]
        values += [rng.randint(0, 4)] if rng.random() < 0.05 else []
        calls.append(replace(call, values=tuple(values)))
    last = tuple(value for value in sorted(held) if rng.random() >= late)
    return [*calls, Call("read", 400, 401, values=last)] if rng.random() < FINAL else calls


def is_explained(calls: Sequence[Call]) -> bool:
    """Whether each element by itself may never have been lost."""
    reads = [call for call in calls if call.f == "read" and call.outcome == "ok"]
    if any(len(set(read.values or ())) < len(read.values or ()) for read in reads):
        return False
    adds = [call for call in calls if call.f == "add"]
    elements = {call.value for call in adds} | {
        value for read in reads for value in read.values or ()
    }
    return all(
        has_order(
            [*(add for add in adds if add.value == element), *marked(reads, element)],
            _NEW,
            _after,
            _is_kept,
        )
        for element in elements
    )


def marked(reads: Sequence[Call], element: int | None) -> list[Call]:
    """Return the reads with 1 or 0 for their values: whether they returned the element."""
    return [replace(read, values=(int(element in (read.values or ())),)) for read in reads]


_NEW = (False, False, False)
"""Whether the element was added, is known, and was missing in the last read although it was known."""


def _after(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, tuple)
    is_added, is_known, is_missing = state
    if call.f == "add":
        return [(True, is_known or call.outcome == "ok", is_missing)]
    if call.values == (1,):
        return [(True, True, False)] if is_added else []
    return [(is_added, is_known, is_known)]


def _is_kept(state: Hashable) -> bool:
    assert isinstance(state, tuple)
    return not state[2]

"""Random histories of causal-reverse, sequential and predicate-inserts, and what their definitions say of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

from nemesis.checkers.breaks.operations import Call
from tests.checkers.linearizable.objects import has_order

OUTCOMES = ("ok",) * 8 + ("fail", "info", "none")
ABSENT = -1
SUBKEYS = 3


def random_writes(rng: Random) -> list[Call]:
    """Return writes of values, and reads that return some of them; a value may be written again."""
    calls: list[Call] = []
    held: list[int] = []
    missing = rng.choice([0.0, 0.6])
    for number in range(rng.randint(3, 9)):
        instant = 100 + 10 * number
        start, finish = instant - rng.randint(0, 9), instant + rng.randint(0, 9)
        outcome = rng.choice(OUTCOMES)
        if rng.random() < 0.6:
            value = number if rng.random() < 0.8 else rng.randint(0, 3)
            held += [value] * (outcome == "ok" or (outcome != "fail" and number % 2))
            calls.append(Call("write", start, finish, outcome, value))
        else:
            snapshot = held[: len(held) - rng.choice([0, 0, 1])]
            values = tuple(value for value in snapshot if rng.random() >= missing)
            calls.append(Call("read", start, finish, outcome, values=values))
    return calls


def writes_are_explained(calls: Sequence[Call]) -> bool:
    """Whether each read by itself returned what some writes left that come first in an order of real time."""
    writes = [call for call in calls if call.f == "write" and call.outcome != "fail"]
    written = {call.value for call in writes}
    return all(
        any(
            {write.value for write in done} == written & set(read.values or ())
            and _comes_first(done, writes)
            for count in range(len(writes) + 1)
            for done in combinations(writes, count)
        )
        for read in calls
        if read.f == "read" and read.outcome == "ok"
    )


def _comes_first(done: Sequence[Call], writes: Sequence[Call]) -> bool:
    return not any(
        other.outcome == "ok" and (other.finish or 0) < write.start
        for write in done
        for other in writes
        if other not in done
    )


def random_subkeys(rng: Random) -> list[Call]:
    """Return writes of keys, and reads of their subkeys."""
    calls = []
    off = rng.choice([0.0, 0.3])
    for number in range(rng.randint(1, 5)):
        key, outcome = rng.randint(0, 1), rng.choice(OUTCOMES)
        start, finish = 10 * number, 10 * number + rng.randint(1, 25)
        if rng.random() < 0.3:
            calls.append(Call("write", start, finish, outcome, key=key))
            continue
        steps = [True] * SUBKEYS + [False] * SUBKEYS
        rng.shuffle(steps)
        answers = [ABSENT if rng.random() < off else answer for answer in answers_of(steps)]
        calls.append(Call("read", start, finish, outcome, values=tuple(answers), key=key))
    return calls


def answers_of(interleaving: Sequence[bool]) -> tuple[int, ...]:
    """What a read returns whose queries and a write's insertions have this sequence; True: an insertion."""
    inserted = 0
    answers: list[int] = []
    for is_insertion in interleaving:
        if is_insertion and inserted < SUBKEYS:
            inserted += 1
        elif not is_insertion and len(answers) < SUBKEYS:
            subkey = SUBKEYS - 1 - len(answers)
            answers.append(subkey if subkey < inserted else ABSENT)
    return tuple(answers)


EVERY_ANSWER = {
    answer
    for number in range(2 ** (2 * SUBKEYS))
    if len(answer := answers_of([bool(number >> bit & 1) for bit in range(2 * SUBKEYS)])) == SUBKEYS
}


def subkeys_are_explained(calls: Sequence[Call]) -> bool:
    """Whether each read is one of an interleaving of insertions and queries."""
    return all(
        call.values in EVERY_ANSWER for call in calls if call.f == "read" and call.outcome == "ok"
    )


def random_inserts(rng: Random) -> list[Call]:
    """Return inserts of a few keys, most of which fail once the key is there."""
    calls = []
    there: set[int] = set()
    off = rng.choice([0.0, 0.3])
    for number in range(rng.randint(1, 7)):
        call = Call("insert", 10 * number, 10 * number + rng.randint(1, 25), key=rng.randint(0, 3))
        outcome = rng.choice(OUTCOMES)
        if call.key in there and rng.random() >= off:
            outcome = rng.choice(["fail", "fail", "info", "none"])
        there |= {call.key or 0} if outcome != "fail" else set()
        calls.append(replace(call, outcome=outcome))
    return calls


def inserts_are_explained(calls: Sequence[Call]) -> bool:
    """Whether some order exists in which each insert finds no row of its key."""
    return has_order(calls, frozenset(), _inserted)


def _inserted(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, frozenset)
    return [] if call.key in state else [state | {call.key}]

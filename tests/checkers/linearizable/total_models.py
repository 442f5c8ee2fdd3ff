"""Random counters, generators of ids and banks, and what the definitions of Jepsen's workloads say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

from nemesis.checkers.breaks.operations import Call

OUTCOMES = ("ok",) * 8 + ("fail", "info", "none")
ACCOUNTS = (0, 1)


def random_counter(rng: Random) -> list[Call]:
    """Return a few adds and reads of a counter."""
    total, off = 0, rng.choice([0.0, 0.2])
    calls = []
    for number in range(rng.randint(2, 8)):
        instant = 100 + 10 * number
        outcome = rng.choice(OUTCOMES)
        call = Call(
            rng.choice(["add", "read"]),
            instant - rng.randint(0, 15),
            instant + rng.randint(0, 15),
            outcome,
        )
        if call.f == "add":
            amount = rng.randint(0, 3)
            total += amount * (outcome == "ok" or (outcome != "fail" and number % 2))
            calls.append(replace(call, value=amount))
        else:
            calls.append(replace(call, value=total + rng.choice([-1, 1]) * (rng.random() < off)))
    return calls


def counter_is_explained(calls: Sequence[Call]) -> bool:
    """Whether each read is between two values that the counter can have, and no read is below an earlier one."""
    adds = [call for call in calls if call.f == "add" and call.outcome != "fail"]
    reads = [call for call in calls if call.f == "read" and call.outcome == "ok"]
    for read in reads:
        sums = [
            sum(add.value or 0 for add in done)
            for count in range(len(adds) + 1)
            for done in combinations(adds, count)
            if _may_be_done(done, adds, read)
        ]
        if not min(sums) <= (read.value or 0) <= max(sums):
            return False
    return not any(
        (a.finish or 0) < b.start and (a.value or 0) > (b.value or 0) for a in reads for b in reads
    )


def _may_be_done(done: Sequence[Call], adds: Sequence[Call], read: Call) -> bool:
    """Whether these adds, and no others, may have happened at some moment of a read."""
    begun = [*(add.start for add in done), read.start]
    return all(add.start <= (read.finish or 0) for add in done) and not any(
        add.outcome == "ok" and (add.finish or 0) < max(begun) for add in adds if add not in done
    )


def random_eventual_counter(rng: Random, smallest: int) -> list[Call]:
    """Return a few adds, reads that may lack some of them, and mostly final reads.

    ``smallest``: amounts are from this number to 3.
    """
    calls: list[Call] = []
    off = rng.choice([0.0, 0.2])
    functions = rng.choice([("add", "read"), ("add", "read", "final-read"), ("add", "final-read")])
    for number in range(rng.randint(2, 8)):
        instant = 100 + 10 * number
        call = Call(
            rng.choice(functions),
            instant - rng.randint(0, 15),
            instant + rng.randint(0, 15),
            rng.choice(OUTCOMES),
        )
        if call.f == "add":
            calls.append(replace(call, value=rng.randint(smallest, 3)))
            continue
        lag = 0.0 if call.f == "final-read" else 0.3
        applied = (
            add.value or 0
            for add in calls
            if add.f == "add"
            and (rng.random() < 0.5 if add.outcome in ("info", "none") else add.outcome == "ok")
            and rng.random() >= lag
        )
        calls.append(replace(call, value=sum(applied) + rng.choice([-1, 1]) * (rng.random() < off)))
    return calls


def eventual_counter_is_explained(calls: Sequence[Call]) -> bool:
    """Whether each read returned the sum of some adds, and each final read of all that had to be there."""
    adds = [call for call in calls if call.f == "add" and call.outcome != "fail"]
    reads = [call for call in calls if call.f != "add" and call.outcome == "ok"]
    return all(any(_explains(some, adds, read) for some in _subsets(adds)) for read in reads)


def _subsets(adds: Sequence[Call]) -> Iterator[tuple[Call, ...]]:
    return (some for count in range(len(adds) + 1) for some in combinations(adds, count))


def _explains(some: Sequence[Call], adds: Sequence[Call], read: Call) -> bool:
    """Whether a read may have returned exactly these adds."""
    missed = [add for add in adds if add not in some]
    may_lack = read.f != "final-read" or not any(
        add.outcome == "ok" and (add.finish or 0) < read.start for add in missed
    )
    return (
        may_lack
        and all(add.start <= (read.finish or 0) for add in some)
        and sum(add.value or 0 for add in some) == read.value
    )


def random_ids(rng: Random) -> list[Call]:
    """Return a few operations that generate ids."""
    ids = range(rng.choice([6, 12, 40]))
    return [
        Call("generate", 10 * n, 10 * n + rng.randint(1, 30), rng.choice(OUTCOMES), rng.choice(ids))
        for n in range(rng.randint(1, 7))
    ]


def ids_are_unique(calls: Sequence[Call]) -> bool:
    """Whether no two operations returned one id."""
    done = [call for call in calls if call.outcome == "ok"]
    return all(a.value != b.value for a, b in combinations(done, 2))


def random_bank(rng: Random) -> list[Call]:
    """Return reads of two accounts, and transfers between them."""
    balances = {account: rng.randint(0, 4) for account in ACCOUNTS}
    off = rng.choice([0.0, 0.3])
    calls = []
    for number in range(rng.randint(1, 7)):
        outcome = rng.choice(OUTCOMES)
        if rng.random() < 0.4:
            amount = rng.randint(0, 2)
            if outcome == "ok" and (balances[0] >= amount or rng.random() < off):
                balances = {0: balances[0] - amount, 1: balances[1] + amount}
            calls.append(Call("transfer", 10 * number, 10 * number + 15, outcome))
            continue
        read = dict(balances)
        if rng.random() < off:
            change = rng.randrange(3)
            if change == 0:
                read[rng.choice(ACCOUNTS)] += rng.choice([-1, 1])
            elif change == 1:
                del read[rng.choice(ACCOUNTS)]
            else:
                read[2] = 0
        flat = tuple(number for pair in read.items() for number in pair)
        calls.append(Call("read", 10 * number, 10 * number + 15, outcome, values=flat))
    return calls


def bank_is_explained(calls: Sequence[Call]) -> bool:
    """Whether all reads have the same accounts and the same sum, and no account is overdrawn."""
    reads = [
        dict(zip((call.values or ())[::2], (call.values or ())[1::2], strict=True))
        for call in calls
        if call.f == "read" and call.outcome == "ok"
    ]
    return all(
        a.keys() == b.keys() and sum(a.values()) == sum(b.values())
        for a, b in combinations(reads, 2)
    ) and all(balance >= 0 for read in reads for balance in read.values())

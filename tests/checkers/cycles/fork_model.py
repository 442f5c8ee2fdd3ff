"""Random histories of long-fork, and whether some order of the writes explains all reads."""

from __future__ import annotations

from itertools import permutations
from random import Random

from nemesis.checkers.breaks.transactions import Micro, r, w
from tests.checkers.cycles.brute_force import Txn

KEYS = 4
OUTCOMES = ("ok",) * 6 + ("fail", "info")


def random_forks(rng: Random) -> list[Txn]:
    """Return a write of each key, and reads of some keys; seldom a transaction that the workload does not have."""
    planned: list[tuple[Micro, ...]] = [(w(key, 1),) for key in range(KEYS)]
    snapshot = rng.sample(range(KEYS), KEYS)
    off = rng.choice([0.0, 0.5])
    for _ in range(rng.randint(2, 6)):
        length = rng.randint(0, KEYS)
        planned.append(
            tuple(
                r(key, 1) if (key in snapshot[:length]) != (rng.random() < off) else r(key)
                for key in rng.sample(range(KEYS), rng.randint(1, 3))
            )
        )
    if rng.random() < 0.1:
        planned.append(rng.choice([(w(0, 2),), (w(1, 2), w(2, 2)), (w(3, 2), r(0, 1))]))
    rng.shuffle(planned)
    return [
        Txn(n, micro, rng.choice(OUTCOMES), 10 * n, 10 * n + rng.randint(1, 40), f"p{n}")
        for n, micro in enumerate(planned)
    ]


def is_explained(txns: list[Txn]) -> bool:
    """Whether each transaction of reads alone returned the keys that come first in one order of all writes."""
    reads = [
        {(m.key, bool(m.read)) for m in t.micro}
        for t in txns
        if t.kind == "ok" and not any(m.is_write for m in t.micro)
    ]
    return any(
        all(
            any(
                all(is_present == (key in permutation[:length]) for key, is_present in read)
                for length in range(KEYS + 1)
            )
            for read in reads
        )
        for permutation in permutations(range(KEYS))
    )

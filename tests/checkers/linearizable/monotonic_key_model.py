"""Random reads of keys that only grow, and whether some order of them lets no key fall."""

from __future__ import annotations

from itertools import permutations
from random import Random

from nemesis.checkers.breaks.operations import Call

Read = dict[int, int]


def calls_of(reads: list[Read]) -> list[Call]:
    return [
        Call("read", 1, 2, values=tuple(number for entry in read.items() for number in entry))
        for read in reads
    ]


def never_falls(reads: list[Read]) -> bool:
    """Whether some order of the reads lets no key fall."""

    def is_rising(permutation: tuple[Read, ...]) -> bool:
        highest: Read = {}
        for read in permutation:
            if any(value < highest.get(key, value) for key, value in read.items()):
                return False
            highest |= read
        return True

    return any(map(is_rising, permutations(reads)))


def random_reads(rng: Random) -> list[Read]:
    return [
        {key: rng.randint(0, 3) for key in rng.sample(range(3), rng.randint(1, 3))}
        for _ in range(rng.randint(1, 5))
    ]

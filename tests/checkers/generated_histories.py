"""Numbered histories of an honest cluster, each correct and with one anomaly. A number gives the same history."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from nemesis.history.events import Event
from tests.checkers.anomalies import ANOMALIES, Spoil
from tests.checkers.honest_cluster import NODES
from tests.checkers.honest_histories import WEIGHTED, honest_history

HISTORIES = 10_000


BLOCK = 50


LONGEST = 120


INJECTIONS: Sequence[tuple[str, Spoil]] = [
    (name, spoil) for name, spoils in ANOMALIES.items() for spoil in spoils
]


class NowhereError(Exception):
    """A history has no place for an anomaly."""


def correct_history(number: int) -> list[Event]:
    rng = Random(f"history {number}")
    length = rng.randrange(LONGEST)
    return honest_history([(rng.choice(WEIGHTED), rng.choice(NODES)) for _ in range(length)])


def spoiled_history(number: int) -> tuple[str, Spoil, list[Event]]:
    """The history with one anomaly: whose turn it is, or the next that has a place in it."""
    rng = Random(f"anomaly {number}")

    def choose(positions: Sequence[int]) -> int:
        if not positions:
            raise NowhereError
        return rng.choice(positions)

    events = correct_history(number)
    for further in range(len(INJECTIONS)):
        name, spoil = INJECTIONS[(number + further) % len(INJECTIONS)]
        try:
            answer = spoil(events, choose)
        except NowhereError:
            continue
        if answer is not None:
            return name, spoil, answer
    raise AssertionError(f"history {number} has no place for any anomaly")


def blocks(start: int, stop: int) -> list[range]:
    return [range(first, min(first + BLOCK, stop)) for first in range(start, stop, BLOCK)]

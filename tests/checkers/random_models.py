"""Random small histories of each model, judged by nemesis and by trying out every order of their operations.

``foreign_scoreboard`` counts some hundred of each for its page; the nightly test compares ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final

from nemesis.checkers.breaks.operations import events as events_of_calls
from nemesis.checkers.cycles import ListAppend, RwRegister
from nemesis.checkers.framework.model import Verdict, combine
from nemesis.checkers.framework.property import Check
from nemesis.checkers.linearizable import (
    LinearizableCasRegister,
    LinearizableMutex,
    LinearizableRegister,
    MonotonicKeys,
)
from nemesis.history.events import Event
from tests.checkers.cycles.brute_force import serializable
from tests.checkers.cycles.random_histories import events as events_of_txns
from tests.checkers.cycles.random_histories import tiny as tiny_transactions
from tests.checkers.histories import judge
from tests.checkers.linearizable import (
    key_value_model,
    monotonic_key_model,
    multi_register_model,
    queue_model,
    set_model,
)
from tests.checkers.linearizable.objects import Apply, has_order
from tests.checkers.linearizable.random_objects import Model, random_calls
from tests.checkers.linearizable.register_model import mutex_after, register_after, tiny

Drawn = tuple[Check, list[Event], bool]
"""A check, a history, and whether the history has an order."""
Draw = Callable[[Random], Drawn]


def _searched(model: Model) -> Draw:
    def draw(rng: Random) -> Drawn:
        calls = random_calls(model, rng)
        is_right = has_order(calls, model.initial, model.apply)
        return model.check(), events_of_calls(*calls), is_right

    return draw


def _register(check: Callable[[], Check], fs: str, initial: Hashable, after: Apply) -> Draw:
    def draw(rng: Random) -> Drawn:
        calls = tiny(rng, fs, distinct=rng.random() < 0.5)
        return check(), events_of_calls(*calls), has_order(calls, initial, after)

    return draw


def _rising_keys(rng: Random) -> Drawn:
    reads = monotonic_key_model.random_reads(rng)
    calls = monotonic_key_model.calls_of(reads)
    return MonotonicKeys(), events_of_calls(*calls), monotonic_key_model.never_falls(reads)


def _transactions(*, lists: bool) -> Draw:
    def draw(rng: Random) -> Drawn:
        txns = tiny_transactions(rng, lists=lists)
        check = ListAppend() if lists else RwRegister()
        return check, events_of_txns(txns), serializable(txns, "realtime", lists=lists)

    return draw


_CAS: Final = "read write cas cas"
DRAWS: Final = MappingProxyType(
    {
        "register": _register(LinearizableRegister, "read read write", None, register_after),
        "cas-register": _register(LinearizableCasRegister, _CAS, None, register_after),
        "mutex": _register(LinearizableMutex, "acquire release", False, mutex_after),
        "linearizable-set": _searched(set_model.MODEL),
        "fifo-queue": _searched(queue_model.MODEL),
        "key-value": _searched(key_value_model.MODEL),
        "multi-register": _searched(multi_register_model.MODEL),
        "monotonic-keys": _rising_keys,
        "list-append": _transactions(lists=True),
        "rw-register": _transactions(lists=False),
    }
)
"""Workloads in which one order of all operations has to explain a history."""


@dataclass(slots=True)
class Count:
    agree: int = 0
    unknown: int = 0
    wrong: tuple[str, ...] = ()
    right: int = 0
    """Histories that have an order."""


def count(workload: str, seeds: Sequence[int]) -> Count:
    """Compare the verdicts on random histories with every order of them.

    A history with an order has to be ``valid``, or ``unknown`` where it does not show enough. One without an order has
    to be ``invalid``; if it is ``unknown``, it is counted as that.
    """
    counted = Count()
    for seed in seeds:
        check, events, is_right = DRAWS[workload](Random(seed))
        verdict = combine(result.verdict for result in judge(check, events).values())
        counted.right += is_right
        is_convicted = verdict is Verdict.INVALID
        if is_convicted != is_right:
            counted.agree += 1
        elif verdict is Verdict.UNKNOWN:
            counted.unknown += 1
        else:
            counted.wrong += (f"seed {seed} is {verdict}",)
    return counted

"""Random small histories of each model, judged by nemesis and by trying out every order of their operations.

Each workload draws its histories from a seed, and states whether its definition allows them: in an order of all
operations (``objects.has_order``), in an abstract execution of transactions (``abstract_executions``,
``guarantee_executions``), or by looking at every pair of operations (``random_logs``). ``foreign_scoreboard`` counts
some hundred of each for its page; the nightly test compares ten thousand. ``python -m tests.checkers.random_models
FILE`` writes the counts of ten thousand.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final

from nemesis.checkers.breaks.operations import Call
from nemesis.checkers.breaks.operations import events as events_of_calls
from nemesis.checkers.cycles.check import ListAppend, RwRegister
from nemesis.checkers.cycles.long_fork import LongFork
from nemesis.checkers.cycles.models import MODELS, Guarantee
from nemesis.checkers.foreign import select_foreign
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.fold import GlobalCheck, conclude
from nemesis.checkers.framework.model import Result, Verdict, combine
from nemesis.checkers.framework.property import Check
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.linearizable.banks import Bank
from nemesis.checkers.linearizable.causal_reverse import CausalReverse
from nemesis.checkers.linearizable.counters import Counter as CounterCheck
from nemesis.checkers.linearizable.eventual_counters import EventualCounter
from nemesis.checkers.linearizable.monotonic_keys import MonotonicKeys
from nemesis.checkers.linearizable.mutex import LinearizableMutex
from nemesis.checkers.linearizable.predicate_inserts import PredicateInserts
from nemesis.checkers.linearizable.queues import TotalQueue
from nemesis.checkers.linearizable.registers import LinearizableCasRegister, LinearizableRegister
from nemesis.checkers.linearizable.sets import SetFull
from nemesis.checkers.linearizable.subkeys import Sequential
from nemesis.checkers.linearizable.unique_ids import UniqueIds
from nemesis.history.events import Event
from nemesis.history.foreign.names import Names
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.schema import ordered, table
from tests.checkers import random_logs
from tests.checkers.cycles import fork_model
from tests.checkers.cycles.abstract_executions import LEVELS, SESSIONS, allowed
from tests.checkers.cycles.brute_force import serializable
from tests.checkers.cycles.guarantee_executions import keeps
from tests.checkers.cycles.random_executions import random_execution
from tests.checkers.cycles.random_histories import events as events_of_txns
from tests.checkers.cycles.random_histories import tiny as tiny_transactions
from tests.checkers.linearizable import (
    insert_models,
    key_value_model,
    late_set_model,
    monotonic_key_model,
    multi_register_model,
    queue_model,
    set_model,
    total_models,
    total_queue_model,
)
from tests.checkers.linearizable.objects import Apply, has_order
from tests.checkers.linearizable.random_objects import Model, random_calls
from tests.checkers.linearizable.register_model import mutex_after, register_after, tiny
from tests.history.foreign.reading import events_of, read

DEFAULT: Final = "–"
"""The name of a workload's only model, or of its default."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A history, and for each model its checks and whether the model allows the history."""

    events: list[Event]
    models: Mapping[str, tuple[Sequence[Check], bool]]


Draw = Callable[[Random], Drawn]


def _without_models(check: Check, events: list[Event], is_right: bool) -> Drawn:
    return Drawn(events, {DEFAULT: ((check,), is_right)})


def _searched(model: Model) -> Draw:
    def draw(rng: Random) -> Drawn:
        calls = random_calls(model, rng)
        return _without_models(model.check(), events_of_calls(*calls), model.has_order(calls))

    return draw


def _register(check: Callable[[], Check], fs: str, initial: Hashable, after: Apply) -> Draw:
    def draw(rng: Random) -> Drawn:
        calls = tiny(rng, fs, distinct=rng.random() < 0.5)
        return _without_models(check(), events_of_calls(*calls), has_order(calls, initial, after))

    return draw


def _calls(
    check: Callable[[], Check],
    some_calls: Callable[[Random], list[Call]],
    is_explained: Callable[[list[Call]], bool],
) -> Draw:
    def draw(rng: Random) -> Drawn:
        calls = some_calls(rng)
        return _without_models(check(), events_of_calls(*calls), is_explained(calls))

    return draw


def _eventual_counter(smallest: int) -> Draw:
    def draw(rng: Random) -> list[Call]:
        return total_models.random_eventual_counter(rng, smallest)

    return _calls(EventualCounter, draw, total_models.eventual_counter_is_explained)


def _rising_keys(rng: Random) -> Drawn:
    reads = monotonic_key_model.random_reads(rng)
    calls = monotonic_key_model.calls_of(reads)
    return _without_models(
        MonotonicKeys(), events_of_calls(*calls), monotonic_key_model.never_falls(reads)
    )


def _transactions(*, lists: bool) -> Draw:
    check = ListAppend if lists else RwRegister
    names = [
        session + level
        for session in SESSIONS
        for level in LEVELS
        if session + level != "strong-serializable"
    ]
    guarantees = [name for name, model in MODELS.items() if model.guarantee is not Guarantee.NONE]

    def draw(rng: Random) -> Drawn:
        some = tiny_transactions if rng.random() < 0.2 else random_execution
        txns = some(rng, lists=lists)
        models = allowed(txns, lists=lists)
        strict = serializable(txns, "realtime", lists=lists)
        expected = {DEFAULT: ((check(),), strict)}
        for name in names:
            expected[name] = ((check(MODELS[name]),), models[name])
        for name in guarantees:
            expected[name] = ((check(MODELS[name]),), keeps(txns, name, lists=lists))
        return Drawn(events_of_txns(txns), expected)

    return draw


def _forks(rng: Random) -> Drawn:
    txns = fork_model.random_forks(rng)
    return _without_models(LongFork(), events_of_txns(txns), fork_model.is_explained(txns))


def _logs(rng: Random) -> Drawn:
    operations = random_logs.random_log(rng)
    events = list(events_of(read(random_logs.text(operations)), "kafka", Names()))
    wrong = random_logs.anomalies(operations)
    uncommitted = wrong - {"G1c", "precommitted-read", random_logs.IN_DOUBT}
    return Drawn(
        events,
        {
            DEFAULT: (select_foreign("kafka"), not wrong),
            "read-uncommitted": (
                select_foreign("kafka", None, "read-uncommitted"),
                not uncommitted,
            ),
        },
    )


_CAS: Final = "read write cas cas"
DRAWS: Final = MappingProxyType(
    {
        "register": _register(LinearizableRegister, "read read write", None, register_after),
        "cas-register": _register(LinearizableCasRegister, _CAS, None, register_after),
        "mutex": _register(LinearizableMutex, "acquire release", False, mutex_after),
        "set": _calls(SetFull, late_set_model.random_set, late_set_model.is_explained),
        "linearizable-set": _searched(set_model.MODEL),
        "queue": _calls(TotalQueue, total_queue_model.random_queue, total_queue_model.is_explained),
        "fifo-queue": _searched(queue_model.MODEL),
        "key-value": _searched(key_value_model.MODEL),
        "counter": _calls(
            CounterCheck, total_models.random_counter, total_models.counter_is_explained
        ),
        "g-counter": _eventual_counter(smallest=0),
        "pn-counter": _eventual_counter(smallest=-3),
        "unique-ids": _calls(UniqueIds, total_models.random_ids, total_models.ids_are_unique),
        "bank": _calls(Bank, total_models.random_bank, total_models.bank_is_explained),
        "multi-register": _searched(multi_register_model.MODEL),
        "monotonic-keys": _rising_keys,
        "predicate-inserts": _calls(
            PredicateInserts, insert_models.random_inserts, insert_models.inserts_are_explained
        ),
        "causal-reverse": _calls(
            CausalReverse, insert_models.random_writes, insert_models.writes_are_explained
        ),
        "sequential": _calls(
            Sequential, insert_models.random_subkeys, insert_models.subkeys_are_explained
        ),
        "long-fork": _forks,
        "kafka": _logs,
        "list-append": _transactions(lists=True),
        "rw-register": _transactions(lists=False),
    }
)
"""By workload, how its histories are drawn."""
UNDECIDED: Final = frozenset(
    {"set", "queue", "long-fork", "g-counter", "pn-counter", "kafka"}
    | {name for name, model in MODELS.items() if model.is_of_sessions}
)
"""Workloads and models that may leave a history undecided that their definition allows: an element may be lost, a
poll in doubt may have returned a record, a transaction has another form, no read is final, or each process has one
transaction (models of sessions).
"""


@dataclass(slots=True)
class Count:
    agree: int = 0
    unknown: int = 0
    """Histories that the definition forbids, and that are ``unknown``."""
    undecided: int = 0
    """Histories that the definition allows, and that are ``unknown`` because of a finding."""
    wrong: tuple[str, ...] = ()
    right: int = 0
    """Histories that the definition allows."""
    verdicts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Of judging."""


def count(workload: str, seeds: Iterable[int]) -> dict[str, Count]:
    """Compare the verdicts on random histories with the definition of each model, and return the counts by model.

    A history that the definition allows has to be ``valid``. If it is ``unknown`` because of a finding, it is
    undecided; without a finding, a property has nothing to judge in it. A history that the definition forbids has to be
    ``invalid``; if it is ``unknown``, it is counted as that.
    """
    counts: dict[str, Count] = {}
    for seed in seeds:
        drawn = DRAWS[workload](Random(seed))
        history = _History(drawn.events)
        for model, (checks, is_right) in drawn.models.items():
            counted = counts.setdefault(model, Count())
            began = time.perf_counter()
            results = history.judged(checks)
            verdict = combine(result.verdict for result in results)
            counted.seconds += time.perf_counter() - began
            counted.right += is_right
            counted.verdicts[verdict] += 1
            if is_right and verdict is Verdict.UNKNOWN and any(map(_is_open, results)):
                counted.undecided += 1
            elif (verdict is Verdict.INVALID) != is_right:
                counted.agree += 1
            elif verdict is Verdict.UNKNOWN:
                counted.unknown += 1
            else:
                counted.wrong += (f"seed {seed} is {verdict}",)
    return counts


def _is_open(result: Result) -> bool:
    """Whether a property is ``unknown`` because of a finding."""
    return any(finding.verdict is Verdict.UNKNOWN for finding in result.findings)


class _History:
    """A history that several checks read; what alike checks need of it is taken once."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._group = MemoryRowGroup(ordered(table(events)), 0)
        self._segment = Segment.of(self._group)
        self._parts: dict[type[Check], Any] = {}

    def judged(self, checks: Sequence[Check]) -> list[Result]:
        """Return the results; checks of the whole history run without the engine's threads, which would take longer."""
        others = [check for check in checks if not isinstance(check, GlobalCheck)]
        results = run_checks([self._group], others) if others else []
        for check in checks:
            if isinstance(check, GlobalCheck):
                results += self._judged_whole(check)
        return results

    def _judged_whole(self, check: GlobalCheck[Any]) -> list[Result]:
        if type(check) not in self._parts:
            segment = self._segment.only(check.kinds, check.columns)
            self._parts[type(check)] = check.part(segment) if len(segment) else None
        part = self._parts[type(check)]
        if part is None:
            return [conclude(decided, checked=0) for decided in check.properties()]
        results = check.judge([part])
        return [results] if isinstance(results, Result) else list(results)


def main() -> None:
    """Count each workload that a file does not have yet, and append a line of JSON for each of its models."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--workload", action="append", choices=[*DRAWS])
    options = parser.parse_args()
    lines = options.file.read_text("utf-8").splitlines() if options.file.exists() else []
    done = {json.loads(line)["workload"] for line in lines}
    for workload in options.workload or DRAWS:
        if workload in done:
            continue
        counts = count(workload, range(options.histories))
        rows = [
            {"workload": workload, "model": model, "histories": options.histories}
            | {"agree": counted.agree, "unknown": counted.unknown}
            | {"undecided": counted.undecided, "right": counted.right}
            | {"verdicts": counted.verdicts, "wrong": counted.wrong}
            | {"seconds": round(counted.seconds, 1)}
            for model, counted in counts.items()
        ]
        with options.file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()

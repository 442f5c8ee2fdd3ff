"""Histories of every foreign workload, right and wrong as chance has it: to see that nothing but the history counts.

They are no test of what is found; each check has its own. A workload without a history here fails a test, so a new
check is split and given to Spark from its first day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from nemesis.checkers.breaks.events import TP
from nemesis.history.events import Event

OPERATIONS = 80
PROCESSES = 4
KEYS = 2
READ, WRITE = 0, 1
UNKNOWN = -1

Columns = dict[str, Any]
Step = Callable[["Objects", Random, int], tuple[Columns, Columns]]
"""What an operation asks of a key, and what its ``ok`` adds to that."""


@dataclass
class Objects:
    """What has been done to each key so far, in the order of invocation."""

    written: dict[int, list[int]] = field(default_factory=lambda: {key: [] for key in range(KEYS)})
    number: int = 0

    def fresh(self, key: int) -> int:
        self.number += 1
        self.written[key].append(self.number)
        return self.number

    def some(self, rng: Random, key: int) -> int | None:
        """Mostly the last that was written."""
        written = self.written[key]
        if not written or rng.random() < 0.1:
            return None
        return written[-1] if rng.random() < 0.7 else rng.choice(written)

    def most(self, rng: Random, key: int) -> list[int]:
        return [value for value in self.written[key] if rng.random() < 0.95]

    def first(self, rng: Random, key: int) -> list[int]:
        written = self.written[key]
        return written[: len(written) - (rng.random() < 0.3)]


def _register(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.4:
        return {"f": "write", "value": objects.fresh(key)}, {}
    return {"f": "read"}, {"value": objects.some(rng, key)}


def _cas_register(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.3:
        old = objects.some(rng, key)
        new = objects.fresh(key)
        return {"f": "cas", "values": [new if old is None else old, new]}, {}
    return _register(objects, rng, key)


def _mutex(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    return {"f": rng.choice(["acquire", "release"])}, {}


def _set(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.7:
        return {"f": "add", "value": objects.fresh(key)}, {}
    return {"f": "read"}, {"values": objects.most(rng, key)}


def _queue(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    draw = rng.random()
    if draw < 0.5:
        return {"f": "enqueue", "value": objects.fresh(key)}, {}
    if draw < 0.9:
        return {"f": "dequeue"}, {"value": objects.some(rng, key)}
    return {"f": "drain"}, {"values": objects.most(rng, key)}


def _counter(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.6:
        objects.fresh(key)
        return {"f": "add", "value": 1}, {}
    return {"f": "read"}, {"value": len(objects.most(rng, key))}


def _eventual_counter(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.6:
        objects.fresh(key)
        return {"f": "add", "value": 2}, {}
    f = rng.choice(["read", "final-read"])
    return {"f": f}, {"value": 2 * len(objects.most(rng, key)) + (rng.random() < 0.1)}


def _monotonic_keys(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    objects.fresh(key)
    values = [
        number
        for each, written in objects.written.items()
        for number in (each, len(written) + rng.randint(0, 1))
    ]
    return {"f": rng.choice(["read", "inc"])}, {"values": values}


def _predicate_inserts(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    number = objects.fresh(key)
    return {"f": "insert", "key": number // 2 + rng.randrange(2), "values": [number, -1]}, {}


def _key_value(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.6:
        letter = ord("a") + objects.fresh(key) % 26
        return {"f": rng.choice(["append", "append", "put"]), "values": [letter]}, {}
    return {"f": "get"}, {"values": [ord("a") + value % 26 for value in objects.first(rng, key)]}


def _unique_ids(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    number = objects.fresh(key)
    return {"f": "generate"}, {"value": number - (rng.random() < 0.1)}


def _bank(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    amount = rng.randrange(12)
    if rng.random() < 0.5:
        return {"f": "transfer", "values": [0, 1, amount]}, {}
    return {"f": "read"}, {"values": [0, 10 - amount, 1, amount - (rng.random() < 0.1)]}


def _kafka(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    columns = {**TP, "partition": 0, "topic": f"topic-{key}", "topic_id": None}
    if rng.random() < 0.6:
        value = objects.fresh(key)
        offset = len(objects.written[key]) - 1 - (rng.random() < 0.05)
        return {"f": "send", "value": value, "acks": -1, **columns}, {"offset": offset}
    read = objects.first(rng, key)
    start = rng.randrange(len(read) + 1)
    offsets = [offset for offset in range(start, len(read)) if rng.random() < 0.95]
    said = {"offsets": offsets, "values": [read[offset] for offset in offsets]}
    return {"f": "poll", "offset": start, **columns}, said


def _transaction(objects: Objects, rng: Random, *, is_list: bool) -> tuple[Columns, Columns]:
    asked: list[int] = []
    reported: list[int] = []
    for _ in range(rng.randint(1, 3)):
        key = rng.randrange(KEYS)
        if rng.random() < 0.5:
            write = [WRITE, key, 1, objects.fresh(key)]
            asked += write
            reported += write
            continue
        item = objects.some(rng, key)
        read = objects.first(rng, key) if is_list else [0 if item is None else item]
        asked += [READ, key, UNKNOWN]
        reported += [READ, key, len(read), *read]
    return {"f": "txn", "micro_operations": asked}, {"micro_operations": reported}


def _list_append(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    return _transaction(objects, rng, is_list=True)


def _rw_register(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    return _transaction(objects, rng, is_list=False)


def _causal_reverse(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    columns, reported = _set(objects, rng, key)
    return {**columns, "f": "write" if columns["f"] == "add" else "read"}, reported


def _sequential(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.5:
        objects.fresh(key)
        return {"f": "write"}, {}
    return {"f": "read"}, {"values": [rng.choice([number, -1]) for number in (2, 1, 0)]}


def _long_fork(objects: Objects, rng: Random, key: int) -> tuple[Columns, Columns]:
    if rng.random() < 0.5:
        number = objects.fresh(key)
        write = {"micro_operations": [WRITE, number, 1, 1]}
        return {"f": "txn", **write}, write
    asked: list[int] = []
    reported: list[int] = []
    for number in range(max(1, objects.number - 2), objects.number + 1):
        has_value = rng.random() < 0.8
        asked += [READ, number, UNKNOWN]
        reported += [READ, number, int(has_value), *[1] * has_value]
    return {"f": "txn", "micro_operations": asked}, {"micro_operations": reported}


STEPS: Mapping[str, Step] = {
    "register": _register,
    "cas-register": _cas_register,
    "mutex": _mutex,
    "set": _set,
    "linearizable-set": _set,
    "queue": _queue,
    "fifo-queue": _queue,
    "counter": _counter,
    "g-counter": _eventual_counter,
    "pn-counter": _eventual_counter,
    "multi-register": _rw_register,
    "key-value": _key_value,
    "monotonic-keys": _monotonic_keys,
    "predicate-inserts": _predicate_inserts,
    "unique-ids": _unique_ids,
    "bank": _bank,
    "list-append": _list_append,
    "rw-register": _rw_register,
    "causal-reverse": _causal_reverse,
    "sequential": _sequential,
    "long-fork": _long_fork,
    "kafka": _kafka,
}


def foreign_events(workload: str, seed: int, operations: int = OPERATIONS) -> Iterator[Event]:
    """Yield a history of this workload: a few processes at once, most operations ``ok``."""
    rng = Random(f"{workload} {seed}")
    objects = Objects()
    now = 0
    pending: dict[int, tuple[Columns, Columns]] = {}
    has_key = workload not in ("list-append", "rw-register", "multi-register", "long-fork", "kafka")
    for op in range(operations * 2):
        now += rng.randint(1, 3)
        process = rng.randrange(PROCESSES)
        about: Columns = {"process": f"client-{process}", "seq": op, "time": now}
        if process in pending:
            asked, reported = pending.pop(process)
            kind = rng.choices(["ok", "fail", "info"], [18, 1, 1])[0]
            answer = reported if kind == "ok" else {}
            yield Event(kind=kind, **{**about, **asked, **answer})
            continue
        key = rng.randrange(KEYS)
        asked, reported = STEPS[workload](objects, rng, key)
        asked = {"op": op, **({"key": key} if has_key else {}), **asked}
        pending[process] = asked, reported
        yield Event(kind="invoke", **about, **asked)

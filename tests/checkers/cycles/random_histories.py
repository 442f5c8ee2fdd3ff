"""Tiny histories of transactions, right and wrong ones, by seed."""

from __future__ import annotations

from random import Random

from nemesis.checkers.breaks.transactions import Micro, append, r, txn
from nemesis.history.events import Event
from tests.checkers.cycles.brute_force import Txn

Plan = list[tuple[int, int | None]]


def tiny(rng: Random, *, lists: bool, most: int = 5) -> list[Txn]:
    """A few transactions that read what might have been there: serial histories, with reads that are off at times."""
    count, keys = rng.randint(3, most), rng.randint(1, 2)
    kinds = [rng.choice(["ok"] * 6 + ["info", "fail"]) for _ in range(count)]
    values = iter(range(1, 100))
    plans: list[Plan] = [
        [
            (rng.randrange(keys), next(values) if rng.random() < 0.5 else None)
            for _ in range(rng.randint(1, 3))
        ]
        for _ in range(count)
    ]
    sloppiness = rng.choice([0.0, 0.5, 1.0])
    states: list[dict[int, tuple[int, ...]]] = [{}]
    txns: list[Txn] = []
    clock = 0
    for number, (kind, plan) in enumerate(zip(kinds, plans, strict=True), start=1):
        base = rng.choice(states) if rng.random() < sloppiness else states[-1]
        state = dict(base)
        micro: list[Micro] = []
        for key, value in plan:
            if value is not None:
                micro.append(append(key, value))
                state[key] = (*state.get(key, ()), value) if lists else (value,)
            else:
                observed = state
                if rng.random() < sloppiness / 2:
                    observed = rng.choice(states)
                micro.append(r(key, *observed.get(key, ())))
        if kind == "ok" or (kind == "info" and rng.random() < 0.6) or rng.random() < sloppiness / 4:
            states.append(_merged(states[-1], base, state, lists=lists))
        began = clock + rng.randint(0, 3)
        ended = began + rng.randint(1, 12)
        clock += rng.choice([1, 4, 13])
        process = rng.choice("ab") if rng.random() < 0.6 else f"p{number}"
        if any(t.process == process and t.end > began for t in txns):
            process = f"p{number}"
        txns.append(Txn(number, tuple(micro), kind, began, ended, process))
    return txns


def _merged(
    now: dict[int, tuple[int, ...]],
    base: dict[int, tuple[int, ...]],
    state: dict[int, tuple[int, ...]],
    *,
    lists: bool,
) -> dict[int, tuple[int, ...]]:
    """What is there once a transaction that worked on an older state has been applied to the present one."""
    merged = dict(now)
    for key, content in state.items():
        if content != base.get(key, ()):
            added = content[len(base.get(key, ())) :]
            merged[key] = (*now.get(key, ()), *added) if lists else content
    return merged


def events(txns: list[Txn]) -> list[Event]:
    return [
        event
        for t in txns
        for event in txn(t.op, *t.micro, index=(t.began, t.ended), kind=t.kind, process=t.process)
    ]

"""Random tiny histories of transactions that each see some of those before them: of all levels, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from nemesis.checkers.breaks.transactions import Micro, append, r
from tests.checkers.cycles.brute_force import Txn

KINDS = ("ok", "ok", "ok", "ok", "ok", "ok", "info", "fail")
GARBAGE = 99
"""A value that nothing writes."""
READING = (0.5, 0.9)
"""How likely a transaction reads a key."""
WRITING = (0.25, 0.4)
"""How likely it writes a key (once more)."""
AGAIN = 0.15
"""How likely it reads a key once more."""
VISIBLE = (0.5, 0.8, 1.0)
"""How likely a transaction sees one that was before it."""
DISTURBED = 0.4
"""How many histories have one changed read."""


def random_execution(rng: Random, *, lists: bool, most: int = 5) -> list[Txn]:
    """Return a few transactions in the order of their versions, each of which read from a random part of the others."""
    count, keys = rng.randint(3, most), rng.choice([1, 2, 2, 3])
    values = iter(range(1, GARBAGE))
    likely = rng.choice(VISIBLE)
    is_closed = rng.random() < 0.5
    reading, writing = rng.choice(READING), rng.choice(WRITING)
    txns: list[Txn] = []
    snapshots: list[set[int]] = []
    clock = 0
    for number in range(count):
        visible = {
            other
            for other in range(number)
            if rng.random() < likely and (txns[other].kind != "fail" or rng.random() < 0.1)
        }
        if is_closed:
            visible = visible.union(*(snapshots[other] for other in visible))
        state = [_version(txns, key, visible, lists=lists) for key in range(keys)]
        micro: list[Micro] = []
        for key in rng.sample(range(keys), keys):
            if rng.random() < reading:
                micro.append(r(key, *state[key]))
            while rng.random() < writing:
                value = next(values)
                micro.append(append(key, value))
                state[key] = (*state[key], value) if lists else (value,)
            if rng.random() < AGAIN:
                micro.append(r(key, *state[key]))
        if not micro:
            micro.append(r(0, *state[0]))
        snapshots.append(visible)
        began = clock + rng.randint(0, 3)
        ended = began + rng.randint(1, 12)
        clock += rng.choice([1, 4, 13])
        process = rng.choice("ab")
        if any(t.process == process and t.end > began for t in txns):
            process = f"p{number}"
        txns.append(Txn(number, tuple(micro), rng.choice(KINDS), began, ended, process))
    return _disturbed(rng, txns, lists=lists) if rng.random() < DISTURBED else txns


def _version(txns: Sequence[Txn], key: int, visible: set[int], *, lists: bool) -> tuple[int, ...]:
    """Return the version of a key that its last visible writer left; of lists with all elements before."""
    last = -1
    for other in visible:
        if any(m.is_write and m.key == key for m in txns[other].micro):
            last = max(last, other)
    elements = [
        m.value
        for txn in txns[: last + 1]
        if txn.op == last or (lists and (txn.kind != "fail" or txn.op in visible))
        for m in txn.micro
        if m.key == key and m.value is not None
    ]
    return tuple(elements) if lists else tuple(elements[-1:])


def _disturbed(rng: Random, txns: Sequence[Txn], *, lists: bool) -> list[Txn]:
    """Return the transactions with one read that returned something else."""
    reads = [
        (number, n)
        for number, t in enumerate(txns)
        for n, m in enumerate(t.micro)
        if not m.is_write
    ]
    changed = list(txns)
    if not reads:
        return changed
    number, n = rng.choice(reads)
    txn = txns[number]
    m = txn.micro[n]
    written = [o.value for t in txns for o in t.micro if o.key == m.key and o.value is not None]
    value = rng.choice([*written, *written, GARBAGE])
    read = list(m.read or ())
    if lists:
        change = rng.randrange(4)
        if change == 0:
            read = read[:-1]
        elif change == 1:
            rng.shuffle(read)
        else:
            read.append(value)
    else:
        read = rng.choice([[], [value], [value]])
    micro = (*txn.micro[:n], r(m.key, *read), *txn.micro[n + 1 :])
    changed[number] = replace(txn, micro=micro)
    return changed

"""A store that works: transactions that commit one after the other, and overlap in time as they do in reality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from nemesis.checkers.breaks.transactions import Micro, r, w
from tests.checkers.cycles.brute_force import Txn

PROCESSES = 3
TICKS = 10
"""Between two commits of one process; half of it at most lies between a commit and either end."""


@dataclass(frozen=True)
class Wanted:
    """What one transaction is to do: (key, whether to write) each, its fate, how long it takes before and after."""

    micro: Sequence[tuple[int, bool]]
    kind: str
    before: int
    after: int


WANTED = st.builds(
    Wanted,
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=4),
    st.sampled_from(["ok", "ok", "ok", "ok", "info", "fail"]),
    st.integers(1, TICKS * PROCESSES // 2 - 1),
    st.integers(0, TICKS * PROCESSES // 2 - 1),
)


def commit(wanted: Sequence[Wanted], *, lists: bool) -> list[Txn]:
    """Carry the transactions out, in their order. Those of which nobody knows have committed every other time."""
    state: dict[int, tuple[int, ...]] = {}
    txns: list[Txn] = []
    value = 0
    for number, item in enumerate(wanted):
        after = dict(state)
        micro: list[Micro] = []
        for key, is_write in item.micro:
            if is_write:
                value += 1
                micro.append(w(key, value))
                after[key] = (*after.get(key, ()), value) if lists else (value,)
            else:
                micro.append(r(key, *after.get(key, ())))
        if item.kind == "ok" or (item.kind == "info" and number % 2):
            state = after
        now = TICKS * (number + PROCESSES)
        process = f"p{number % PROCESSES}" if item.kind != "info" else f"crashed-{number}"
        txns.append(
            Txn(number, tuple(micro), item.kind, now - item.before, now + item.after, process)
        )
    return txns

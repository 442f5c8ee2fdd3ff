"""The compiled search proves an order where every order that is tried out says that one exists, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.linearizable import order_walk, registers
from nemesis.checkers.linearizable.object_operations import (
    FAIL,
    INFO,
    NEVER,
    OK,
    UNSET,
    Operations,
)
from nemesis.checkers.linearizable.registers import LinearizableCasRegister
from nemesis.checkers.linearizable.search import Effects
from tests.checkers.histories import judge
from tests.checkers.linearizable.objects import has_order
from tests.checkers.linearizable.register_model import register_after, tiny

FS = "read write cas cas"
OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO, "none": INFO}
CODES = {"read": 0, "write": 1, "cas": 2}
KEYS = 4_000


def columns(calls: Sequence[Call]) -> tuple[Operations, Effects]:
    """The calls as columns, with what each does."""
    values = [UNSET if call.value is None else call.value for call in calls]
    pairs = [call.values or (value, value) for call, value in zip(calls, values, strict=True)]
    number = np.arange(len(calls))
    finish = [call.finish if call.outcome in ("ok", "fail") else NEVER for call in calls]
    operations = Operations(
        f=np.array([CODES[call.f] for call in calls], dtype=np.int8),
        outcome=np.array([OUTCOMES[call.outcome] for call in calls], dtype=np.int8),
        key=np.array([call.key or 0 for call in calls], dtype=np.int64),
        value=np.array(values, dtype=np.int64),
        start=np.array([call.start for call in calls], dtype=np.int64),
        finish=np.array(finish, dtype=np.int64),
        invoked=2 * number,
        completed=2 * number + 1,
    )
    effects = Effects(
        np.array([needs for needs, _ in pairs], dtype=np.int64),
        operations.f != CODES["write"],
        np.array([gives for _, gives in pairs], dtype=np.int64),
    )
    return operations, effects


def ordered(calls: Sequence[Call]) -> dict[int, bool]:
    """Whether each key's operations were proved to have an order."""
    operations, effects = columns(calls)
    proved = order_walk.ordered_keys(operations, effects, UNSET)
    return dict(zip(operations.key.tolist(), proved.tolist(), strict=True))


def busy(rng: Random, clients: int, count: int, *, doubtful: int = 0) -> list[Call]:
    """A true history of compare-and-sets, writes and reads of one register, by some clients at the same time."""
    state: int | None = None
    calls = []
    for number in range(count):
        start, finish = 100 * number - rng.randrange(50 * clients), 100 * number + rng.randrange(50)
        f = rng.choice(FS.split())
        pair = (rng.randrange(3), rng.randrange(3))
        outcome = "info" if number % 7 == 0 and number < 7 * doubtful else "ok"
        if f == "cas" and state != pair[0]:
            f = "read"
        if f == "read":
            calls.append(Call(f, start, finish, "ok", state))
        elif f == "write":
            state = pair[1]
            calls.append(Call(f, start, finish, outcome, state))
        else:
            state = pair[1]
            calls.append(Call(f, start, finish, outcome, values=pair))
    return calls


def test_tiny_histories_of_many_keys_against_every_order() -> None:
    rng = Random(34)
    by_key = {key: tiny(rng, FS, distinct=False) for key in range(KEYS)}
    calls = [replace(call, key=key) for key, called in by_key.items() for call in called]
    rng.shuffle(calls)
    proved = ordered(calls)
    expected = {key: has_order(called, None, register_after) for key, called in by_key.items()}
    assert proved == expected
    assert KEYS // 10 < sum(expected.values()) < KEYS - KEYS // 10


@pytest.mark.parametrize("clients", [1, 5, 20])
def test_a_true_history_of_a_busy_register_has_an_order(clients: int) -> None:
    calls = busy(Random(clients), clients, 3_000)
    assert ordered(calls)[0]
    stale = replace(calls[-1], f="read", value=99, values=None)
    assert not ordered([*calls[:-1], stale])[0]


def test_operations_of_unknown_outcome_are_put_where_others_need_them() -> None:
    calls = busy(Random(3), 4, 1_000, doubtful=40)
    assert ordered(calls)[0]
    assert any(call.outcome == "info" for call in calls)


def test_more_than_the_limits_is_not_proved() -> None:
    writes = [Call("write", 0, None, "info", number) for number in range(70)]
    reads = [Call("read", 10 * number + 10, 10 * number + 11, "ok", number) for number in range(70)]
    assert ordered(writes[:60] + reads[:60])[0]
    assert not ordered(writes + reads)[0]
    slow = Call("cas", 0, 10_000, values=(500, 501))
    later = [Call("write", 10 * n + 1, 10 * n + 2, value=n) for n in range(501)]
    assert not ordered([slow, *later])[0], "501 operations ended before the slow one can be put"


def test_the_check_finds_the_same_with_and_without_compiled_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(5)
    for _ in range(150):
        calls = [
            replace(call, key=key) for key in range(3) for call in tiny(rng, FS, distinct=False)
        ]
        results = []
        for least in (0, 10**9):
            monkeypatch.setattr(registers, "WORTH_COMPILED", least)
            results.append(judge(LinearizableCasRegister(), events(*calls)))
        assert results[0] == results[1], calls


def test_what_is_not_proved_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "WORTH_COMPILED", 0)
    slow = Call("cas", 0, 10_000, values=(150, 500))
    later = [Call("write", 10 * n + 1, 10 * n + 2, value=n % 151) for n in range(151)]
    assert not ordered([slow, *later])[0]
    last_reads = {500: "valid", 7: "invalid"}
    for value, verdict in last_reads.items():
        calls = [slow, *later, Call("read", 20_000, 20_001, value=value)]
        (result,) = judge(LinearizableCasRegister(), events(*calls)).values()
        assert result.verdict == verdict

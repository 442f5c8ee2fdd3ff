"""Registers: under every model a history is convicted exactly if no order of versions explains it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from nemesis.checkers.cycles.analysis import analyse_registers, is_broken
from nemesis.checkers.cycles.models import MODELS, Level, Model, SessionOrder
from nemesis.checkers.cycles.orders.contradiction import contradiction
from nemesis.checkers.cycles.orders.forcing import Choices
from nemesis.checkers.cycles.orders.problem import NIL, Problem
from nemesis.checkers.cycles.orders.search import Answer, decide, search_among
from nemesis.checkers.cycles.orders.witness import has_serial_order
from nemesis.checkers.cycles.transaction_rows import Rows
from tests.checkers.cycles.brute_force import Txn, serializable
from tests.checkers.cycles.random_histories import tiny
from tests.checkers.cycles.version_orders import FROM, LEVELS, SESSIONS, Registers, rows_of


def is_convicted(rows: Rows, model: Model) -> bool:
    analysis = analyse_registers(rows, model)
    exists = analysis.cycle_exists
    assert exists is None or not exists.bound
    return is_broken(analysis, model) or exists is not None


def agree(txns: list[Txn]) -> set[str]:
    """Compare under each model, and return those that convict."""
    rows = rows_of(txns)
    convicting = set()
    for prefix, session in SESSIONS.items():
        registers = Registers(txns, session)
        broken = registers.broken()
        for number, level in enumerate(LEVELS):
            model = MODELS[prefix + level]
            wrong = any(FROM[name] <= number for name in broken) or not registers.allows(level)
            assert is_convicted(rows, model) == wrong, (model.name, broken, txns)
            if wrong:
                convicting.add(model.name)
        assert serializable(txns, session, lists=False) != wrong, (session, txns)
    return convicting


def test_some_hundred_histories() -> None:
    convicting = [agree(tiny(Random(seed), lists=False)) for seed in range(200)]
    assert sum(bool(names) for names in convicting) > 20
    assert sum(not names for names in convicting) > 20


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_thousand_histories() -> None:
    met: dict[str, int] = {}
    for seed in range(1000, 11_000):
        for name in agree(tiny(Random(seed), lists=False, most=6)):
            met[name] = met.get(name, 0) + 1
    for prefix in SESSIONS:
        counts = [met.get(prefix + level, 0) for level in LEVELS]
        assert counts == sorted(counts)
        assert len(set(counts[1:])) > 3


def some_problem(rng: Random, level: Level, session_order: SessionOrder) -> Problem:
    """Blind writers and readers of few keys, of which most reads may be right."""
    count, keys = rng.randint(6, 16), rng.randint(1, 3)
    state: dict[int, int] = {}
    older: list[dict[int, int]] = [{}]
    reads, written = [], []
    began = []
    for txn in range(count):
        base = state if rng.random() < 0.8 else rng.choice(older)
        writes = {key for key in range(keys) if rng.random() < 0.4}
        reads += [(txn, key, base.get(key, NIL)) for key in range(keys) if rng.random() < 0.4]
        written += [(txn, key) for key in sorted(writes)]
        older.append(dict(state))
        state.update(dict.fromkeys(writes, txn))
        began.append(10 * txn - rng.randint(0, 30))
    reader, read_key, read_from = np.array(reads or [(0, 0, NIL)]).T
    writer, write_key = np.array(written or [(0, 0)]).T
    return Problem(
        txn=np.arange(count),
        level=level,
        session_order=session_order,
        began=np.array(began),
        ended=np.array([10 * txn + rng.randint(0, 30) for txn in range(count)]),
        process=np.array([rng.randrange(3) + 3 * txn for txn in range(count)]),
        reader=reader,
        read_key=read_key,
        read_from=read_from,
        read_micro=np.zeros(len(reader), dtype=np.int64),
        writer=writer,
        write_key=write_key,
        keys=keys,
    )


@pytest.mark.parametrize("level", list(Level)[Level.READ_ATOMIC :])
def test_the_solver_alone_agrees_with_reachability(level: Level) -> None:
    """With every choice left to the solver; what contradicts itself is a part that does so by itself."""
    answers = []
    for seed in range(60):
        rng = Random(seed)
        problem = some_problem(rng, level, rng.choice(list(SessionOrder)))
        answer = decide(problem).answer
        assert search_among(Choices.of(problem)).answer is answer
        if answer is Answer.IMPOSSIBLE:
            proof = contradiction(problem)
            assert proof.cycles
            part = problem.among(np.array(proof.txns))
            assert decide(part).answer is Answer.IMPOSSIBLE
            if level is Level.SERIAL:
                assert not has_serial_order(problem)
        answers.append(answer)
    assert {Answer.EXISTS, Answer.IMPOSSIBLE} == set(answers)


@pytest.mark.parametrize("session_order", list(SessionOrder))
def test_a_thousand_transactions_are_decided(session_order: SessionOrder) -> None:
    """Blind writes to few keys, of which nothing but reads tells the order; then one read of a version that is gone."""
    rng = Random(7)
    state = dict.fromkeys(range(6), NIL)
    reads, written = [], []
    for txn in range(1000):
        for key in rng.sample(range(6), 3):
            if rng.random() < 0.5:
                state[key] = txn
                written.append((txn, key))
            elif state[key] != txn:
                reads.append((txn, key, state[key]))
    reader, read_key, read_from = np.array(reads).T
    writer, write_key = np.array(written).T
    numbers = np.arange(1000)
    problem = Problem(
        txn=numbers,
        level=Level.SERIAL,
        session_order=session_order,
        began=10 * numbers - 50,
        ended=10 * numbers + 50,
        process=numbers % 20,
        reader=reader,
        read_key=read_key,
        read_from=read_from,
        read_micro=np.zeros(len(reader), dtype=np.int64),
        writer=writer,
        write_key=write_key,
        keys=6,
    )
    assert has_serial_order(problem)
    assert decide(problem).answer is Answer.EXISTS
    stale = replace(problem, read_from=read_from.copy())
    later = np.flatnonzero((reader > 900) & (read_from > 800))
    stale.read_from[later[0]] = read_from[np.flatnonzero(read_key == read_key[later[0]])[20]]
    if session_order is SessionOrder.REALTIME:
        assert not has_serial_order(stale)
        assert decide(stale).answer is Answer.IMPOSSIBLE

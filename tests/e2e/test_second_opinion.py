"""Porcupine, a checker of linearizability that others wrote, says the same as ours of the same files.

Needs Go, and Porcupine from the module proxy or a cache. Elle and Knossos are published on Clojars alone: exports are
in the form that they read, and are not given to them here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.porcupine_program import NOTHING, PorcupineMissing, build, judge
from nemesis.checkers import select_foreign
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.initial_values import NIL
from nemesis.history.foreign.edn import dumps
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operations import Operation, form_of
from nemesis.history.memory import history_of
from tests.history.foreign.reading import events_of, read

PROCESSES = 3
FUNCTIONS = {
    "register": ("write", "read"),
    "cas-register": ("write", "read", "cas"),
    "mutex": ("acquire", "release"),
}
OPINIONS = {Verdict.VALID: "ok", Verdict.INVALID: "illegal"}
FEW, MANY = 200, 10_000

History = list[dict[str, Any]]


@pytest.fixture(scope="module")
def porcupine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that asks Porcupine."""
    try:
        return build(tmp_path_factory.mktemp("porcupine"))
    except PorcupineMissing as missing:
        pytest.skip(str(missing))


def drawn(rng: Random, workload: str) -> History:
    """Some operations of a few processes that overlap at random, with results of which many cannot be."""
    ends = dict.fromkeys(range(PROCESSES), 0)
    operations = []
    for number in range(rng.randrange(1, 9)):
        client = rng.randrange(PROCESSES)
        call = ends[client] + rng.randrange(1, 6)
        f = rng.choice(FUNCTIONS[workload])
        values = range(number) if workload == "register" else range(2)
        operations.append(
            {
                "client": client,
                "call": call,
                "return": call + rng.randrange(1, 12),
                "f": f,
                "old": rng.randrange(2),
                "new": number if workload == "register" else rng.randrange(2),
                "read": rng.choice([NOTHING, *values]),
                "unknown": rng.random() < 0.15,
            }
        )
        ends[client] = operations[-1]["return"]
        if operations[-1]["unknown"]:  # nothing is known of when it ends: the process is no more
            ends[client] = 10_000 * (number + 1)
    return operations


def written(history: History) -> str:
    """The same as Jepsen writes it."""
    events: list[tuple[int, int, Operation]] = []
    for number, op in enumerate(history):
        asked = {"write": op["new"], "cas": (op["old"], op["new"])}.get(op["f"])
        value_read = None if op["read"] == NOTHING else op["read"]
        ended = value_read if op["f"] == "read" and not op["unknown"] else asked
        for kind, time, value in (
            ("invoke", op["call"], asked),
            ("info" if op["unknown"] else "ok", op["return"], ended),
        ):
            # At one moment everything begins before anything ends, as Porcupine takes it.
            said = Operation(
                line=0,
                type=kind,
                process=number,
                f=op["f"],
                value=value,
                other={"client": op["client"]},
            )
            events.append((time, int(kind != "invoke"), said))
    events.sort(key=lambda event: event[:2])
    return "".join(dumps(form_of(said)) + "\n" for _, _, said in events)


def shows_anything(history: History) -> bool:
    """Whether anybody was told anything: of writes alone we say that nothing was observed."""
    return any(not op["unknown"] and op["f"] != "write" for op in history)


def our_opinion(text: str, workload: str) -> str | None:
    """``ok`` or ``illegal``; None if we say that we do not know."""
    file = read(text)
    events = list(events_of(file, workload, Names()))
    assert file.problems.sentences() == []
    checks = select_foreign(workload, initial=NIL)  # as Porcupine's model begins
    outcome = check(history_of(events), checks)
    return OPINIONS.get(outcome.verdict)


def their_opinions(program: Path, histories: list[History], workload: str) -> list[str]:
    return [answer.verdict for answer in judge(program, workload, histories)]


def agree(program: Path, workload: str, count: int) -> Counter[str]:
    """Ask both of so many histories; return how often who said what."""
    rng = Random(f"{workload}/{count}")
    histories = [drawn(rng, workload) for _ in range(count)]
    said: Counter[str] = Counter()
    for history, their_opinion in zip(
        histories, their_opinions(program, histories, workload), strict=True
    ):
        text = written(history)
        ours = our_opinion(text, workload)
        said[ours or "unknown"] += 1
        disagreement = f"Porcupine says {their_opinion}, we say {ours}:\n{text}"
        assert ours == their_opinion or (ours is None and not shows_anything(history)), disagreement
    return said


@pytest.mark.e2e
@pytest.mark.parametrize("workload", FUNCTIONS)
def test_porcupine_says_the_same(porcupine: Path, workload: str) -> None:
    said = agree(porcupine, workload, FEW)
    assert min(said["ok"], said["illegal"]) > FEW // 10, said


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("workload", FUNCTIONS)
def test_porcupine_says_the_same_of_very_many(porcupine: Path, workload: str) -> None:
    said = agree(porcupine, workload, MANY)
    assert min(said["ok"], said["illegal"]) > MANY // 10, said


def test_a_history_is_written_as_it_was_drawn() -> None:
    operation = {
        "client": 0,
        "call": 3,
        "return": 9,
        "f": "cas",
        "old": 0,
        "new": 1,
        "read": NOTHING,
    }
    assert written([{**operation, "unknown": True}]).splitlines() == [
        "{:type :invoke, :process 0, :f :cas, :value [0 1], :client 0}",
        "{:type :info, :process 0, :f :cas, :value [0 1], :client 0}",
    ]

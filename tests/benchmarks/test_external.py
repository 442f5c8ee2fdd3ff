"""Files of the benchmark of external histories are correct, the same for a seed, and judged so by both programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.bench_external import MEASURED, Measured
from benchmarks.histories.jepsen import CLIENTS, write
from benchmarks.porcupine_program import (
    WORKLOADS,
    FileAnswer,
    PorcupineMissing,
    build,
    judge,
    judge_file,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.history.foreign.names import Names
from tests.checkers.porcupine_calls import calls_of
from tests.history.foreign.reading import events_of, read
from tests.nemesis.judging.foreign_judge import judged

OPERATIONS = 3_000
STALE = re.compile(r":type :ok, (:process \d+), :f :read, :value \[(\d+) \d+\]")


def written(directory: Path, workload: str, seed: int = 1) -> Path:
    file = directory / f"{workload}-{seed}.edn"
    write(file, workload, OPERATIONS, seed)
    return file


@pytest.fixture(scope="module")
def porcupine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that asks Porcupine."""
    try:
        return build(tmp_path_factory.mktemp("porcupine"))
    except PorcupineMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("workload", MEASURED)
def test_a_file_is_correct_and_has_operations_of_many_clients(
    workload: str, tmp_path: Path
) -> None:
    text = written(tmp_path, workload).read_text()
    assert judged(text, workload).verdict is Verdict.VALID
    assert text == written(tmp_path.parent, workload).read_text()
    assert text != written(tmp_path, workload, seed=2).read_text()
    assert text.count(":type :invoke") == OPERATIONS
    assert len(set(re.findall(r":process (\d+)", text))) >= CLIENTS
    assert ":type :fail" in text or workload == "register"


@pytest.mark.e2e
@pytest.mark.parametrize("workload", sorted(set(MEASURED) & WORKLOADS))
def test_porcupine_reads_the_same_file(workload: str, tmp_path: Path, porcupine: Path) -> None:
    file = written(tmp_path, workload)
    assert judge_file(porcupine, file, workload).verdict == "ok"
    stale = STALE.sub(r":type :ok, \1, :f :read, :value [\2 77777]", file.read_text(), count=1)
    file.write_text(stale)
    assert judge_file(porcupine, file, workload).verdict == "illegal"
    assert judged(file.read_text(), workload).verdict is Verdict.INVALID


@pytest.mark.e2e
def test_porcupine_takes_the_calls_of_events(porcupine: Path) -> None:
    ends = ((":invoke", '"x"'), (":ok", '"x"'))
    put = "".join(f'{{:process 0 :type {t} :f :put :key "4" :value {v}}}\n' for t, v in ends)
    get = put.replace(":put", ":get").replace('"x"', "nil", 1)
    histories = [
        calls_of("key-value", events_of(read(text), "key-value", Names()))
        for text in (put + get, get + put)
    ]
    answers = judge(porcupine, "key-value", histories)
    assert [answer.verdict for answer in answers] == ["ok", "illegal"]
    assert all(answer.seconds > 0 for answer in answers)


def test_what_is_required_beside_porcupine() -> None:
    porcupine_times = FileAnswer(operations=10, read_s=1.0, check_s=2.0, verdict="ok")
    figures = Measured("cas-register", 10, 9.0, 2.9, porcupine_times, 3.2).figures()
    assert [figure.is_met for figure in figures] == [True, True]
    slow = Measured("cas-register", 10, 9.7, 3.1, porcupine_times, 3.2).figures()
    assert [figure.is_met for figure in slow] == [False, False]
    alone = Measured("cas-register", 10, 9.0, 2.9, None, None).figures()
    assert [figure.is_met for figure in alone] == [None, None]

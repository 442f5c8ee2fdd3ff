"""One mutant's examination: which runs it asks for, and what it concludes. No process, no simulation."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from nemesis.mutants.generated.draw import all_mutations
from nemesis.searching.generated.children import Ended
from nemesis.searching.generated.examine import (
    BaselineTask,
    TrialTask,
    examine,
    outcome_of,
    status_of,
)
from nemesis.searching.generated.results import MutantRecord, Status
from nemesis.searching.generated.trial import BaselineReport, Pair, TrialReport
from nemesis.support.errors import HarnessError

MUTATION = all_mutations(("controller/election",))[0]
QUIET = TrialReport(reached=3, effective=1, trace_hash="other", properties=())
GUILTY = msgspec.structs.replace(QUIET, properties=("leader-from-isr",))
BROKEN = msgspec.structs.replace(QUIET, node_errors=1, error="KeyError()")
SAME = msgspec.structs.replace(QUIET, effective=0, trace_hash="same")


def baseline(
    pair: Pair, *, cpu_s: float = 1.0, covers: bool = True, more: int = 0, outside: int = 0
) -> BaselineReport:
    """``more`` statements of the mutated module are executed, and ``outside`` of another one."""
    executed = [MUTATION.unit if covers else 1, *range(1000, 1000 + more)]
    lines = {MUTATION.module: executed, "log/log": list(range(outside))}
    return BaselineReport(
        pair=pair, cpu_s=cpu_s, trace_hash="same", findings=(), doubts=(), lines=lines
    )


def examined(
    *answers: Ended[TrialReport],
    runs: int = 4,
    costs: dict[str, float] | None = None,
    covered: tuple[str, ...] = ("a", "b"),
    more: dict[str, int] | None = None,
    outside: dict[str, int] | None = None,
) -> tuple[MutantRecord, list[Pair]]:
    """Answer every task of an examination; return its record and the runs that it asked for."""
    examination = examine(MUTATION, ["a", "b"], first_seed=1, runs=runs)
    given, asked = iter(answers), []
    task = next(examination)
    while True:
        answer: BaselineReport | Ended[TrialReport]
        if isinstance(task, BaselineTask):
            scenario = task.pair.scenario
            answer = baseline(
                task.pair,
                cpu_s=(costs or {}).get(scenario, 1.0),
                covers=scenario in covered,
                more=(more or {}).get(scenario, 0),
                outside=(outside or {}).get(scenario, 0),
            )
        else:
            assert isinstance(task, TrialTask)
            asked.append(task.pair)
            answer = next(given)
        try:
            task = examination.send(answer)
        except StopIteration as stop:
            return stop.value, asked


def test_cheap_runs_come_first_and_the_first_finding_ends_it() -> None:
    record, asked = examined(Ended(QUIET), Ended(GUILTY), costs={"a": 5.0, "b": 1.0})
    assert asked == [Pair("b", 1), Pair("a", 1)]
    assert (record.status, record.killed_by) == (Status.KILLED, ("leader-from-isr",))


def test_the_runs_that_execute_most_of_the_module_come_first() -> None:
    _, asked = examined(*[Ended(QUIET)] * 4, costs={"a": 9.0}, more={"a": 1}, outside={"b": 5})
    assert asked == [Pair("a", 1), Pair("b", 1), Pair("a", 2), Pair("b", 2)]


def test_of_equal_ones_those_that_execute_most_of_the_reference_come_first() -> None:
    _, asked = examined(Ended(GUILTY), costs={"a": 9.0}, outside={"a": 5})
    assert asked == [Pair("a", 1)]


def test_runs_that_do_not_reach_the_change_are_saved() -> None:
    record, asked = examined(Ended(QUIET), Ended(QUIET), covered=("b",))
    assert asked == [Pair("b", 1), Pair("b", 2)]
    assert record.status is Status.SURVIVED


def test_a_change_that_nothing_reaches_costs_no_run() -> None:
    record, asked = examined(covered=())
    assert (record.status, asked) == (Status.NOT_REACHED, [])


def test_crashes_end_it_after_three_runs_and_a_hang_at_once() -> None:
    record, asked = examined(*[Ended(BROKEN)] * 3)
    assert (record.status, len(asked)) == (Status.CRASHED, 3)
    record, asked = examined(Ended(None, "still at work", is_hung=True))
    assert (record.status, len(asked)) == (Status.HUNG, 1)


def test_a_finding_beats_a_crash() -> None:
    assert examined(Ended(BROKEN), Ended(GUILTY))[0].status is Status.KILLED


def test_a_finding_of_a_run_that_equals_the_references_is_a_bug_of_the_harness() -> None:
    same = msgspec.structs.replace(SAME, properties=("hw-bounded",))
    with pytest.raises(HarnessError, match="expected no finding"):
        examined(Ended(same))


def test_a_trace_that_differs_is_an_effect() -> None:
    reference = baseline(Pair("a", 1))
    assert outcome_of(SAME, reference, is_hung=False) is Status.NO_EFFECT
    differs = msgspec.structs.replace(SAME, trace_hash="other")
    assert outcome_of(differs, reference, is_hung=False) is Status.SURVIVED
    never = msgspec.structs.replace(SAME, reached=0)
    assert outcome_of(never, reference, is_hung=False) is Status.NOT_REACHED
    unseen = msgspec.structs.replace(GUILTY, reached=0, effective=0)
    assert outcome_of(unseen, reference, is_hung=False) is Status.KILLED


def test_the_status_of_several_runs() -> None:
    assert status_of([]) is Status.NOT_REACHED
    assert status_of([Status.NO_EFFECT, Status.SURVIVED]) is Status.SURVIVED
    assert status_of([Status.SURVIVED, Status.CRASHED]) is Status.CRASHED


def test_a_statement_is_covered_when_it_begins() -> None:
    reference = baseline(Pair("a", 1))
    assert reference.covers(MUTATION)
    assert not reference.covers(replace(MUTATION, unit=1))

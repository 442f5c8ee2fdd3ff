"""Each pass betters what it is for; all together come to the same end with any number of workers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from nemesis.faults.kill import Kill, KillController
from nemesis.faults.partition import Partition
from nemesis.faults.pause import Pause
from nemesis.faults.plan import check
from nemesis.faults.session import ExpireSession
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.searching.shrink import passes
from nemesis.searching.shrink.shrinker import minimise
from nemesis.searching.shrink.signature import Signature
from nemesis.searching.shrink.trials import (
    Budget,
    BudgetSpent,
    Failure,
    InProcessBench,
    Size,
    Trial,
    fingerprint,
)
from nemesis.simulation.guard import RealWorldError
from nemesis.simulation.loop import DeadlockError
from tests.nemesis.searching.shrink.synthetic import FINDING, OPERATIONS, spec, trials

KILL = Kill(selector="one", duration_s=6.0)
CUT = Partition(shape="one-way", selector="leader", direction="mute", duration_s=6.2)
EXPIRE = ExpireSession(selector="controller", when="broker-loss")
PAUSE = Pause(selector="follower", duration_s=5.0)
LONG = spec(
    (5.0, KILL), (12.0, CUT), (13.5, EXPIRE), (25.0, PAUSE), (40.0, KillController(duration_s=5.0))
)


def kinds(of: SimulationSpec) -> list[str]:
    return [planned.fault.name for planned in of.plan]


def needs(*names: str):  # type: ignore[no-untyped-def]
    return lambda candidate: set(names) <= set(kinds(candidate))


def test_only_the_faults_that_are_needed_are_left() -> None:
    search, _ = trials(LONG, needs("partition", "expire-session"))
    passes.fewer_faults(search)
    assert kinds(search.spec) == ["partition", "expire-session"]
    assert search.spec.seed == LONG.seed


def test_faults_that_came_after_the_proof_are_left_out_first() -> None:
    search, bench = trials(
        LONG, needs("kill", "partition", "expire-session"), late=frozenset({3, 4})
    )
    passes.fewer_faults(search)
    assert kinds(bench.tried[0]) == ["kill", "partition", "expire-session"]


def test_a_plan_is_tried_with_other_seeds_when_its_own_does_not_show_it() -> None:
    search, _ = trials(LONG, lambda item: item.seed == 1 and "pause" in kinds(item))
    passes.fewer_faults(search)
    assert (kinds(search.spec), search.spec.seed) == (["pause"], 1)


def test_faults_become_plain_short_and_early() -> None:
    search, _ = trials(spec((12.0, CUT), (20.5, EXPIRE)), needs("partition", "expire-session"))
    passes.simpler_faults(search)
    passes.earlier_faults(search)
    (cut_s, cut), (expire_s, expire) = [(item.at_s, item.fault) for item in search.spec.plan]
    assert cut == Partition(
        shape="one-way", selector="controller", direction="both", duration_s=0.5
    )
    assert expire == ExpireSession(selector="controller", when="now")
    assert cut_s < passes.STEP_S
    assert expire_s - cut_s < passes.STEP_S


def test_what_a_fault_needs_is_kept() -> None:
    def counts(simulation_spec: SimulationSpec) -> bool:
        fault = simulation_spec.plan[0].fault
        assert isinstance(fault, Pause)
        return (
            fault.selector == "broker-2"
            and fault.duration_s >= 3.0
            and simulation_spec.plan[0].at_s >= 4.0
        )

    begun = spec((20.0, Pause(selector="broker-2", duration_s=5.0)))
    search, _ = trials(begun, counts)
    passes.simpler_faults(search)
    passes.earlier_faults(search)
    (planned,) = search.spec.plan
    assert planned.fault == Pause(selector="broker-2", duration_s=3.0)
    assert planned.at_s == pytest.approx(4.0, abs=passes.STEP_S)


def test_no_plan_is_tried_that_a_run_would_refuse() -> None:
    search, bench = trials(LONG, needs("partition"))
    minimise(search)
    for tried in bench.tried:
        check(tried.plan, nodes=tried.scenario.nodes, end_s=tried.scenario.faults_end_s)


def test_only_the_operations_that_are_needed_are_left() -> None:
    wanted = frozenset({OPERATIONS[3], OPERATIONS[80]})
    search, _ = trials(LONG, lambda item: item.operations is None or wanted <= item.operations)
    passes.fewer_operations(search)
    assert search.spec.operations == wanted
    assert search.size.operations == 2


def test_the_time_limit_goes_down_to_what_plan_and_phases_need() -> None:
    phases = LONG.scenario.phases
    search, _ = trials(spec((20.0, KILL)), lambda _: True)
    passes.shorter_time(search)
    assert search.size.seconds == 26.0 + phases.heal_s
    early, _ = trials(spec((1.0, KILL)), lambda _: True)
    passes.shorter_time(early)
    assert early.size.seconds == 15.0


def test_deviations_are_switched_off_or_end_early() -> None:
    none, _ = trials(LONG, lambda _: True)
    passes.fewer_deviations(none)
    assert none.size.deviations == 0
    some, _ = trials(LONG, lambda item: item.deviation_rate > 0 and item.deviate_until_s >= 9.2)
    passes.fewer_deviations(some)
    assert some.spec.deviate_until_s == 9.5


def test_a_search_comes_to_the_same_end_with_any_number_of_workers() -> None:
    wanted = frozenset({OPERATIONS[3], OPERATIONS[80]})

    def counts(simulation_spec: SimulationSpec) -> bool:
        has_operations = simulation_spec.operations is None or wanted <= simulation_spec.operations
        return has_operations and {"partition", "expire-session"} <= set(kinds(simulation_spec))

    ends = []
    for width in (1, 2, 5):
        search, _ = trials(LONG, counts, width=width)
        minimise(search)
        ends.append(fingerprint(search.spec))
        assert search.size == Size(faults=2, operations=2, seconds=15.0, deviations=0)
    assert len(set(ends)) == 1


def test_no_order_is_tried_twice() -> None:
    search, bench = trials(LONG, needs("partition"), width=3)
    minimise(search)
    prints = [fingerprint(tried) for tried in bench.tried]
    assert len(prints) == len(set(prints)) >= search.runs


def test_the_search_ends_with_its_runs() -> None:
    search, bench = trials(LONG, needs("partition"), budget=Budget(runs=5))
    with pytest.raises(BudgetSpent, match="5 runs"):
        minimise(search)
    assert len(bench.tried) == 5


@pytest.mark.parametrize("runs", [1, 7, 20, 43])
def test_the_budget_does_not_depend_on_the_number_of_workers(runs: int) -> None:
    wanted = frozenset({OPERATIONS[3], OPERATIONS[80]})

    def counts(simulation_spec: SimulationSpec) -> bool:
        has_operations = simulation_spec.operations is None or wanted <= simulation_spec.operations
        return has_operations and "partition" in kinds(simulation_spec)

    ends = set()
    for width in (1, 2, 5):
        search, _ = trials(LONG, counts, width=width, budget=Budget(runs=runs))
        with pytest.raises(BudgetSpent, match=f"{runs} runs"):
            minimise(search)
        ends.add((fingerprint(search.spec), search.runs))
    assert len(ends) == 1
    assert ends.pop()[1] == runs


def test_runs_that_fail_do_not_count_and_are_told() -> None:
    def fails(simulation_spec: SimulationSpec) -> bool:
        return len(simulation_spec.plan) < len(LONG.plan)

    for width in (1, 4):
        search, _ = trials(LONG, lambda _: True, width=width, fails=fails)
        with suppress(BudgetSpent):
            minimise(search)
        assert len(search.spec.plan) == len(LONG.plan)
        assert set(search.failures) == {"DeadlockError: nothing can run"}


@pytest.mark.parametrize("error", [DeadlockError("stuck"), AssertionError("no"), RealWorldError()])
def test_whatever_a_run_raises_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def simulate(_simulation_spec: SimulationSpec) -> None:
        raise error

    monkeypatch.setattr("nemesis.searching.shrink.trials.simulate", simulate)
    [answer] = InProcessBench().run([Trial(LONG, Signature.of(FINDING))])
    assert isinstance(answer, Failure)
    assert answer.reason.startswith(type(error).__name__)


def test_the_search_ends_with_its_time() -> None:
    seconds = iter(range(1_000))
    search, bench = trials(
        LONG, needs("partition"), budget=Budget(seconds=10.0), clock=lambda: float(next(seconds))
    )
    with pytest.raises(BudgetSpent, match="10 seconds"):
        minimise(search)
    assert 0 < len(bench.tried) <= 10


def test_equal_orders_have_the_same_fingerprint_and_others_do_not() -> None:
    assert fingerprint(LONG) == fingerprint(replace(LONG))
    few = replace(LONG, operations=frozenset({"a/1", "b/2"}))
    others = [few, replace(few, operations=frozenset({"a/1"})), replace(LONG, seed=8)]
    others += [replace(LONG, plan=LONG.plan[1:]), replace(LONG, deviation_rate=0.0)]
    assert len({fingerprint(item) for item in (LONG, *others)}) == len(others) + 1

"""What is made smaller, and how: each pass takes the best specification so far and tries to better it in one respect.

Faults: those that came too late to matter, then as many as can be left out; what is left strikes earlier, and each is
made simpler: a plain selector instead of a drawn one, the defaults of its fields, a shorter time. A run without a fault
has other random draws behind it (which broker is ``one``), so a candidate with fewer or simpler faults is tried with a
few seeds; every other candidate keeps its seed.

Operations: as few client operations as possible, each at its own time. Time: a shorter time limit. Deviations: none,
else none after as early a time as possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from nemesis.faults.base import Fault
from nemesis.faults.plan import Plan, PlannedFault
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios.scenario import MIN_TIME_LIMIT_S, Scenario
from nemesis.searching.shrink.ddmin import fewest, lowest
from nemesis.searching.shrink.trials import Trials
from nemesis.support.errors import UsageError

OTHER_SEEDS: Final = (0, 1)
"""Tried besides the run's own."""

STEP_S: Final = 0.5
"""In which durations and times are searched for, in seconds."""

SELECTORS: Final = ("controller", "bystander", "broker-1", "broker-2", "broker-3")
"""Plain selectors, the plainest first: they stand for one broker, and nothing is drawn."""


def no_other_faults(trials: Trials) -> None:
    """Let nothing strike in the place of a skipped fault, or the plan would not be what struck."""
    trials.first([replace(trials.spec, redraws=False)])


def fewer_faults(trials: Trials) -> None:
    """Leave out faults."""
    late = trials.evidence.late
    if late:
        in_time = tuple(
            planned for number, planned in enumerate(trials.spec.plan) if number not in late
        )
        _first_plan(trials, [in_time])
    fewest(trials.spec.plan, lambda plans: _first_plan(trials, map(tuple, plans)))


def simpler_faults(trials: Trials) -> None:
    """Make each fault plainer and shorter, the last first."""
    for number in reversed(range(len(trials.spec.plan))):
        _plainer(trials, number)
        _shorter(trials, number)


def earlier_faults(trials: Trials) -> None:
    """Let the first fault strike as early as possible, then each later one closer to the one before it."""
    for number in range(len(trials.spec.plan)):
        plan = trials.spec.plan
        floor_s = plan[number - 1].at_s if number else 0.0
        slack_s = plan[number].at_s - floor_s
        lowest(0, math.floor(slack_s / STEP_S), _advances(trials, plan, number, slack_s))


def fewer_operations(trials: Trials) -> None:
    """Leave out client operations."""
    spec = trials.spec
    fewest(
        trials.evidence.issued,
        lambda chosen: trials.first(
            replace(spec, operations=frozenset(operations)) for operations in chosen
        ),
    )


def shorter_time(trials: Trials) -> None:
    """Lower the time limit, to what the phases and the plan need at least."""
    spec = trials.spec
    lowest(
        math.ceil(shortest_s(spec.scenario, spec.plan)),
        math.floor(spec.scenario.time_limit_s),
        lambda limit_s: trials.takes(_with_time_limit(spec, float(limit_s))),
    )


def fewer_deviations(trials: Trials) -> None:
    """Schedule first in, first out: always, or from as early a time as possible."""
    spec = trials.spec
    if trials.evidence.deviations == 0 or trials.takes(replace(spec, deviation_rate=0.0)):
        return
    until_s = min(spec.deviate_until_s, trials.evidence.virtual_s)
    lowest(
        0,
        math.ceil(until_s / STEP_S),
        lambda steps: trials.takes(replace(spec, deviate_until_s=steps * STEP_S)),
    )


def shortest_s(scenario: Scenario, plan: Plan) -> float:
    """Return the shortest time limit that a scenario may have with this plan.

    Shorter ones than ``MIN_TIME_LIMIT_S`` are refused on every runtime; the result shall be good for any of them.
    """
    phases = scenario.phases
    faults_end_s = max((planned.end_s for planned in plan), default=0.0)
    # The phases must be shorter than the time limit, not equal.
    least_s = phases.heal_s + max(phases.warm_up_s + STEP_S, faults_end_s)
    return max(MIN_TIME_LIMIT_S, least_s)


def _with_time_limit(spec: SimulationSpec, time_limit_s: float) -> SimulationSpec:
    scenario = msgspec.structs.replace(spec.scenario, time_limit_s=time_limit_s)
    return replace(spec, scenario=scenario)


# -- faults ---------------------------------------------------------------------------------------------


def _first_plan(trials: Trials, plans: Iterable[Plan]) -> int | None:
    """Try plans with the present seed, then with others; return the index of the plan that counts."""
    spec, candidates = trials.spec, list(plans)
    seeds = tuple(dict.fromkeys((spec.seed, *OTHER_SEEDS)))
    index = trials.first(
        replace(spec, plan=plan, seed=seed) for seed in seeds for plan in candidates
    )
    return None if index is None else index % len(candidates)


def _plainer(trials: Trials, number: int) -> None:
    """Replace one field of a fault after the other by something plainer."""
    fault = trials.spec.plan[number].fault
    for field in msgspec.structs.fields(fault):
        now = getattr(trials.spec.plan[number].fault, field.name)
        plainer = [
            value for value in _plainer_values(field.name, now, field.default) if value != now
        ]
        faults = (
            msgspec.structs.replace(trials.spec.plan[number].fault, **{field.name: value})
            for value in plainer
        )
        _first_plan(trials, _each_substituted(trials.spec, number, faults))


def _plainer_values(name: str, now: object, default: object) -> Iterator[object]:
    if name == "selector":
        yield from SELECTORS[: SELECTORS.index(now)] if now in SELECTORS else SELECTORS
    elif name != "duration_s" and default is not msgspec.NODEFAULT:
        yield default


def _each_substituted(spec: SimulationSpec, number: int, faults: Iterable[Fault]) -> Iterator[Plan]:
    """The plan with each of the faults in the place of the one there, if the cluster can have it."""
    nodes = spec.scenario.nodes
    for fault in faults:
        try:
            fault.check(nodes)
        except UsageError:
            continue
        yield _placed(spec.plan, number, replace(spec.plan[number], fault=fault))


def _placed(plan: Plan, number: int, planned: PlannedFault) -> Plan:
    return (*plan[:number], planned, *plan[number + 1 :])


def _shorter(trials: Trials, number: int) -> None:
    def counts(steps: int) -> bool:
        planned = trials.spec.plan[number]
        fault = msgspec.structs.replace(planned.fault, duration_s=steps * STEP_S)
        plan = _placed(trials.spec.plan, number, replace(planned, fault=fault))
        return _first_plan(trials, [plan]) is not None

    duration_s = trials.spec.plan[number].fault.duration_s
    lowest(1, math.floor(duration_s / STEP_S), counts)


def _advances(trials: Trials, plan: Plan, number: int, slack_s: float) -> Callable[[int], bool]:
    def counts(steps: int) -> bool:
        by_s = slack_s - steps * STEP_S
        moved = [replace(planned, at_s=round(planned.at_s - by_s, 2)) for planned in plan[number:]]
        return _first_plan(trials, [(*plan[:number], *_sorted(moved))]) is not None

    return counts


def _sorted(plan: Sequence[PlannedFault]) -> list[PlannedFault]:
    return sorted(plan, key=lambda planned: planned.at_s)

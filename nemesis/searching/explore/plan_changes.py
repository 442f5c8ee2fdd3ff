"""Small changes of a fault plan: drop, add, move or change one fault.

A guided exploration varies the plans that it keeps. A changed plan is legal wherever its original is: each fault suits
the cluster and ends inside the window. Unlike a derived plan, a changed one may have several faults at once: the
conductor keeps two faults from the same victim where they must not share it.

A time moves far (anywhere in the window) or, as often, by up to two seconds: what depends on a race needs the small
move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Self

from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan, PlannedFault, PlanSettings
from nemesis.scenarios.scenario import Scenario

NEAR_S: Final = 2.0
ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What is legal: the faults of a scenario, and the window in which they begin and end."""

    settings: PlanSettings
    start_s: float
    end_s: float

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        return cls(scenario.plan_settings(), scenario.phases.warm_up_s, scenario.faults_end_s)

    def allow(self, planned: PlannedFault) -> bool:
        """Whether the fault suits the cluster and is inside the window."""
        is_inside = planned.at_s >= self.start_s and planned.end_s <= self.end_s
        return is_inside and self.settings.suits(planned.fault)


def change(rng: Random, plan: Plan, limits: PlanLimits) -> Plan:
    """Return the plan with one fault dropped, added, moved or changed; the plan itself if no change is legal."""
    for _ in range(ATTEMPTS):
        changed = rng.choice(CHANGES)(rng, plan, limits)
        if changed is not None and changed != plan:
            return changed
    return plan


def drop(rng: Random, plan: Plan, _limits: PlanLimits) -> Plan | None:
    """Return the plan without one of its faults; None if it has no other."""
    return _without(plan, rng.randrange(len(plan))) if len(plan) > 1 else None


def add(rng: Random, plan: Plan, limits: PlanLimits) -> Plan | None:
    """Return the plan with another fault at any time; None if no fault fits there."""
    at_s = rng.uniform(limits.start_s, limits.end_s)
    planned = plans.redraw(rng, limits.settings, at_s=at_s, end_s=limits.end_s)
    return (
        None
        if planned is None
        else _with(plan, plans.maybe_triggered(planned, rng, limits.settings), limits)
    )


def move(rng: Random, plan: Plan, limits: PlanLimits) -> Plan | None:
    """Return the plan with one fault at another time; None if it does not fit there."""
    if not plan:
        return None
    index = rng.randrange(len(plan))
    planned = plan[index]
    latest_s = limits.end_s - planned.fault.duration_s
    is_near = rng.random() < 0.5
    at_s = (
        planned.at_s + rng.uniform(-NEAR_S, NEAR_S)
        if is_near
        else rng.uniform(limits.start_s, latest_s)
    )
    return _replaced(plan, index, replace(planned, at_s=round(at_s, 2)), limits)


def alter(rng: Random, plan: Plan, limits: PlanLimits) -> Plan | None:
    """Return the plan with one fault drawn again, of the same kind and at the same time; None if it does not fit."""
    if not plan:
        return None
    index = rng.randrange(len(plan))
    planned = plan[index]
    fault = plans.draw(type(planned.fault), rng, limits.settings)
    again = plans.maybe_triggered(PlannedFault(planned.at_s, fault), rng, limits.settings)
    return _replaced(plan, index, again, limits)


CHANGES: Final[tuple[Callable[[Random, Plan, PlanLimits], Plan | None], ...]] = (
    drop,
    add,
    move,
    alter,
)


def _without(plan: Plan, index: int) -> Plan:
    return plan[:index] + plan[index + 1 :]


def _with(plan: Plan, planned: PlannedFault, limits: PlanLimits) -> Plan | None:
    return _in_order((*plan, planned)) if limits.allow(planned) else None


def _replaced(plan: Plan, index: int, planned: PlannedFault, limits: PlanLimits) -> Plan | None:
    """Return the plan with another fault in the old one's place, so the same fault drawn again changes nothing."""
    if not limits.allow(planned):
        return None
    return _in_order((*plan[:index], planned, *plan[index + 1 :]))


def _in_order(plan: Plan) -> Plan:
    return tuple(sorted(plan, key=lambda each: each.at_s))

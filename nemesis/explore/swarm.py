"""Swarm testing: every seed runs another configuration, not only another plan.

Groce et al., "Swarm testing" (ISSTA 2012): a run that may do everything seldom does anything often, and what one
feature does hides what another would show. So each seed leaves some kinds of faults out and draws the others with
different weights; recipes of overlapping faults (``nemesis.faults.episodes``) follow the kinds they need, and have
weights of their own. The load and how far the schedule strays from first-in-first-out differ too: a quarter of the
seeds does not stray at all.

Everything is a pure function of scenario and seed, so a seed alone repeats its run. What was drawn is a scenario
like any other: it is stored with the run, which repeats it without this module.

The load is never more than the scenario states, and on average far less: about fifty operations a second, since a
simulated second costs what its operations cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec

from nemesis.errors import UsageError
from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan
from nemesis.scenario import MAX_WEIGHT, FaultSettings, Scenario

KEEP_CHANCES: Final = (0.5, 0.75, 1.0)
"""One is drawn per seed: the chance of each kind and episode to stay."""
WEIGHTS: Final = (1, 1, 2, 4)
CALM_SHARE: Final = 0.25
"""The share of seeds whose schedule is plain first-in-first-out."""
DEVIATION_RATES: Final = (0.001, 0.2)
"""The others draw a rate between these, each order of magnitude equally likely."""
RATES_PER_S: Final = (12, 25, 50)
CLIENTS: Final = (1, 2, 4, 8)
PACES: Final[Mapping[str, str]] = {
    "producers": "send_interval_ms",
    "consumers": "poll_interval_ms",
}
"""Options of workloads that say how many clients there are, and those that say how often each acts."""
ATTEMPTS: Final = 50
"""So many configurations are drawn until one has a fault that fits into the time."""


@dataclass(frozen=True, slots=True)
class Variation:
    """What a seed runs."""

    scenario: Scenario
    plan: Plan
    deviation_rate: float


def vary(scenario: Scenario, seed: int) -> Variation:
    """Return the seed's variation of a scenario; raises ``UsageError`` when no fault fits into its time limit."""
    rng = Random(f"{seed}/swarm")
    for _ in range(ATTEMPTS):
        varied = msgspec.structs.replace(
            scenario,
            faults=_faults(rng, scenario.faults),
            workload=msgspec.structs.replace(
                scenario.workload, options=_load(rng, scenario.workload.options)
            ),
        )
        rate = _deviation_rate(rng)
        plan = plans.derive(
            Random(f"{seed}/plan"),
            varied.plan_settings(),
            start_s=varied.phases.warm_up_s,
            end_s=varied.faults_end_s,
        )
        if plan:
            return Variation(varied, plan, rate)
    raise UsageError(
        f"no fault fits into a time limit of {scenario.time_limit_s:g} s: "
        "raise --time-limit or shorten the scenario's faults.duration_s"
    )


def _faults(rng: Random, settings: FaultSettings) -> FaultSettings:
    chance = rng.choice(KEEP_CHANCES)
    kinds = _keep(rng, settings.kinds, chance) or (rng.choice(settings.kinds),)
    episodes = _keep(rng, settings.episodes, chance)
    weights = {
        name: min(MAX_WEIGHT, settings.weights.get(name, 1) * rng.choice(WEIGHTS))
        for name in (*kinds, *episodes)
    }
    return msgspec.structs.replace(settings, kinds=kinds, episodes=episodes, weights=weights)


def _keep(rng: Random, names: Sequence[str], chance: float) -> tuple[str, ...]:
    return tuple(name for name in names if rng.random() < chance)


def _load(rng: Random, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with fewer clients and a slower pace; options that are not stated stay unstated."""
    drawn = dict(options)
    for count_name, interval_name in PACES.items():
        clients, rate_per_s = rng.choice(CLIENTS), rng.choice(RATES_PER_S)
        stated = options.get(count_name)
        if not isinstance(stated, int):
            continue
        drawn[count_name] = min(clients, stated)
        interval_ms = 1000 * drawn[count_name] // rate_per_s
        drawn[interval_name] = max(interval_ms, options.get(interval_name, 1))
    return drawn


def _deviation_rate(rng: Random) -> float:
    is_calm = rng.random() < CALM_SHARE
    low, high = DEVIATION_RATES
    rate = low * (high / low) ** rng.random()
    return 0.0 if is_calm else round(rate, 6)

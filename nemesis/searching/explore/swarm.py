"""Swarm testing: every seed runs another configuration, not only another plan.

Groce et al., "Swarm testing" (ISSTA 2012): a run that may do everything seldom does anything often, and what one
feature does hides what another would show. So each seed leaves some kinds of faults out and draws the others with
different weights; recipes of overlapping faults (``nemesis.faults.recipes``) follow the kinds they need, and have
weights of their own. The load, the network's latency and how far the schedule strays from first-in-first-out differ
too: a quarter of the seeds does not stray at all.

Everything is a pure function of scenario and seed, so a seed alone repeats its run. What was drawn is a scenario
like any other: it is stored with the run, which repeats it without this module.

The load is on average what the scenario states for simulation, by fewer and busier clients or by more and lazier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, get_args

import msgspec

from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan
from nemesis.scenarios.scenario import MAX_WEIGHT, FaultSettings, Latency, Scenario
from nemesis.simulation.randomness import stream
from nemesis.support.errors import UsageError

KEEP_CHANCES: Final = (0.5, 0.75, 1.0)
"""One is drawn per seed: the chance of each kind and episode to stay."""
WEIGHTS: Final = (1, 1, 2, 4)
CALM_SHARE: Final = 0.25
"""The share of seeds whose schedule is plain first-in-first-out."""
DEVIATION_RATES: Final = (0.001, 0.2)
"""The others draw a rate between these, each order of magnitude equally likely."""
STATED_LATENCY_SHARE: Final = 0.5
"""The share of seeds whose network is the one that the scenario states; the others draw any."""
CLIENT_FACTORS: Final = (0.25, 0.5, 1.0, 2.0)
LOAD_FACTORS: Final = (0.5, 1.0, 1.5)
PACES: Final[Mapping[str, str]] = {
    "producers": "send_interval_ms",
    "consumers": "poll_interval_ms",
}
"""Options of workloads that say how many clients there are, and those that say how often each acts. They are varied
where the scenario states both."""
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
    rng = stream(seed, "swarm")
    latency = _latency(stream(seed, "swarm/latency"), scenario)
    for _ in range(ATTEMPTS):
        varied = msgspec.structs.replace(
            scenario,
            faults=_faults(rng, scenario.faults),
            simulation=msgspec.structs.replace(
                scenario.simulation, options=_load(rng, scenario), latency=latency
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
    kinds = _sample(rng, settings.kinds, chance) or (rng.choice(settings.kinds),)
    recipes = _sample(rng, settings.recipes, chance)
    weights = {
        name: min(MAX_WEIGHT, settings.weights.get(name, 1) * rng.choice(WEIGHTS))
        for name in (*kinds, *recipes)
    }
    return msgspec.structs.replace(settings, kinds=kinds, recipes=recipes, weights=weights)


def _sample(rng: Random, names: Sequence[str], chance: float) -> tuple[str, ...]:
    return tuple(name for name in names if rng.random() < chance)


def _load(rng: Random, scenario: Scenario) -> dict[str, Any]:
    """Return the workload's options for simulation, with another number of clients and another pace."""
    stated = {**scenario.workload.options, **scenario.simulation.options}
    drawn = dict(scenario.simulation.options)
    for count_name, interval_name in PACES.items():
        client_factor, load_factor = rng.choice(CLIENT_FACTORS), rng.choice(LOAD_FACTORS)
        count, interval_ms = stated.get(count_name), stated.get(interval_name)
        if not isinstance(count, int) or not isinstance(interval_ms, int):
            continue
        drawn[count_name] = max(1, round(count * client_factor))
        per_client = drawn[count_name] / count
        drawn[interval_name] = max(1, round(interval_ms * per_client / load_factor))
    return drawn


def _latency(rng: Random, scenario: Scenario) -> Latency:
    is_stated = rng.random() < STATED_LATENCY_SHARE
    drawn: Latency = rng.choice(get_args(Latency))
    return scenario.simulation.latency if is_stated else drawn


def _deviation_rate(rng: Random) -> float:
    is_calm = rng.random() < CALM_SHARE
    low, high = DEVIATION_RATES
    rate = low * (high / low) ** rng.random()
    return 0.0 if is_calm else round(rate, 6)

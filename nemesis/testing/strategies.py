"""What a run can be given, as Hypothesis strategies.

A fault's strategy is made from its fields (their literals, their bounds), so a new kind of fault has one at once. All
shrink towards what is easy to read: fewer faults, the controller as victim, the first of a field's words, short and
early; few operations; no deviation from first in, first out; seed 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, get_args, get_type_hints

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

from nemesis.faults import FAULTS
from nemesis.faults.base import Fault
from nemesis.faults.client_selectors import CLIENT
from nemesis.faults.clients import ClientFault
from nemesis.faults.plan import Plan, PlannedFault
from nemesis.running.simulated.specification import DEVIATION_RATE
from nemesis.scenarios import scenario as scenarios
from nemesis.scenarios.scenario import Scenario
from nemesis.support.choices import choose
from nemesis.support.errors import UsageError

STEP_S: Final = 0.5
"""Times and durations are multiples of it, in seconds."""

SELECTORS: Final = ("controller", "bystander", "leader", "follower", "one")
MAX_DEVIATION_RATE: Final = 0.2
MAX_SEED: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Turns:
    """How the simulated processes take turns; see ``nemesis.simulation.loop``."""

    deviation_rate: float = DEVIATION_RATE
    """Of a process's turns, how many are late."""
    deviate_until_s: float = math.inf


def fault_plans(
    scenario: str | Scenario = "partition-controller",
    *,
    kinds: Sequence[str] | None = None,
    min_faults: int = 1,
    max_faults: int = 4,
    within_s: float = 20.0,
) -> SearchStrategy[Plan]:
    """Plans for a scenario (its name, a file, or a scenario), whose faults all end within so many seconds.

    ``kinds``: names of faults; the scenario's by default. The first second counts from the start of the workload, and
    no fault strikes before the scenario's warm-up is over. Raises ``UsageError`` for unknown names and for a time that
    is too short.
    """
    chosen = scenarios.load(scenario) if isinstance(scenario, str) else scenario
    names = chosen.faults.kinds if kinds is None else tuple(kinds)
    longest_s = chosen.faults.duration_s[1]
    if within_s < chosen.phases.warm_up_s + longest_s:
        raise UsageError(
            f"within_s is {within_s:g}: warm-up and the longest fault alone take "
            f"{chosen.phases.warm_up_s + longest_s:g} s"
        )
    # None is a fault that is left out. Hypothesis may fail to delete a list's element that takes many draws, but it
    # does try the simplest instead of it.
    planned = st.one_of(st.none(), *(_planned(name, chosen, within_s) for name in names))
    plans = st.lists(planned, min_size=min_faults, max_size=max_faults).map(_in_order)
    return plans.filter(lambda plan: len(plan) >= min_faults)


def faults(kind: str, scenario: str | Scenario = "partition-controller") -> SearchStrategy[Fault]:
    """Faults of one kind that the scenario's cluster can have; raises ``UsageError`` for an unknown name."""
    chosen = scenarios.load(scenario) if isinstance(scenario, str) else scenario
    choose(FAULTS, kind)
    settings = chosen.plan_settings()
    low_s, high_s = chosen.faults.duration_s
    fields = {
        field.name: _field(FAULTS[kind], field)
        for field in _struct(FAULTS[kind]).fields
        if field.name not in ("selector", "duration_s")
    }
    if "selector" in FAULTS[kind].__struct_fields__:
        fields["selector"] = st.sampled_from(_selectors(FAULTS[kind], chosen))
    # Some kinds are over at once: they draw no duration either.
    if FAULTS[kind].draw(Random(0), settings.durations).duration_s > 0:
        fields["duration_s"] = _steps(low_s, high_s)
    return st.builds(FAULTS[kind], **fields).filter(settings.suits)


def operations(most: int = 1_000) -> SearchStrategy[int]:
    """How many operations the clients issue: ``simulate_plan(max_operations=...)``."""
    return st.integers(min_value=0, max_value=most)


def workload_options(
    *, producers: int = 8, consumers: int = 4, topics: int = 2, partitions: int = 3
) -> SearchStrategy[dict[str, Any]]:
    """Options of the workload ``produce-consume``, up to these numbers: ``simulate_plan(options=...)``."""
    return st.fixed_dictionaries(
        {
            "producers": st.integers(1, producers),
            "consumers": st.integers(1, consumers),
            "topics": st.integers(1, topics),
            "partitions": st.integers(1, partitions),
            "send_interval_ms": st.sampled_from((100, 50, 20, 200, 500)),
        }
    )


def schedules() -> SearchStrategy[Turns]:
    """How processes take turns: ``simulate_plan(turns=...)``. First in, first out is the simplest."""
    rates = st.integers(0, 20).map(lambda number: number / 20 * MAX_DEVIATION_RATE)
    return st.builds(Turns, deviation_rate=rates)


def seeds() -> SearchStrategy[int]:
    """Seeds of a run."""
    return st.integers(min_value=0, max_value=MAX_SEED)


def _selectors(kind: type[Fault], scenario: Scenario) -> tuple[str, ...]:
    if issubclass(kind, ClientFault):
        leaders = (f'group-leader("{group}")' for group in scenario.faults.groups)
        return CLIENT, *leaders
    return *SELECTORS, *sorted(scenario.nodes)


def _planned(kind: str, scenario: Scenario, within_s: float) -> SearchStrategy[PlannedFault]:
    def planned(at_s: float, fault: Fault) -> PlannedFault:
        return PlannedFault(min(at_s, within_s - fault.duration_s), fault)

    times = _steps(scenario.phases.warm_up_s, within_s)
    return st.builds(planned, at_s=times, fault=faults(kind, scenario))


def _in_order(plan: list[PlannedFault | None]) -> Plan:
    return tuple(sorted(filter(None, plan), key=lambda planned: planned.at_s))


def _steps(low_s: float, high_s: float) -> SearchStrategy[float]:
    low, high = math.ceil(low_s / STEP_S), math.floor(high_s / STEP_S)
    return st.integers(low, max(low, high)).map(lambda steps: steps * STEP_S)


def _struct(kind: type[Fault]) -> inspect.StructType:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return described


def _field(kind: type[Fault], field: inspect.Field) -> SearchStrategy[Any]:
    """Every value that a field of a fault may have; a type that has no strategy here keeps its default."""
    # A field with a description has its type inside.
    allowed = field.type.type if isinstance(field.type, inspect.Metadata) else field.type
    match allowed:
        case inspect.LiteralType():
            # In the order in which they are written down, the default first: msgspec sorts them.
            words = get_args(get_type_hints(kind)[field.name])
            default = () if field.default is msgspec.NODEFAULT else (field.default,)
            return st.sampled_from(tuple(dict.fromkeys((*default, *words))))
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=least, le=most) if least is not None and most is not None:
            return st.integers(least, most)
        case inspect.FloatType(ge=least, le=most) if least is not None and most is not None:
            return st.floats(least, most, allow_nan=False)
    if field.default is msgspec.NODEFAULT:
        raise TypeError(f"the field {field.name} has no default and no strategy")
    return st.just(field.default)

"""Property tests of a cluster: fault plans, workloads and schedules as Hypothesis strategies, and what to assert.

::

    @simulation_settings(max_examples=20)
    @given(plan=fault_plans("partition-controller"), seed=seeds())
    def test_keeps_its_promises(plan, seed):
        assert_valid(simulate_plan(plan, seed=seed))

* ``strategies``   plans, operations, workload options, schedules, seeds; they shrink towards little and plain
* ``running``      a plan in simulation, and the assertion

Needs Hypothesis, which comes with the extra ``testing``. See ``docs/testing.md``.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("hypothesis") is None:
    raise ModuleNotFoundError(
        "nemesis.testing needs Hypothesis: `pip install 'nemesis-kafka[testing]'` brings it"
    )

from nemesis.testing.running import PlanRun, assert_valid, simulate_plan, simulation_settings
from nemesis.testing.strategies import (
    Turns,
    fault_plans,
    faults,
    operations,
    schedules,
    seeds,
    workload_options,
)

__all__ = [
    "PlanRun",
    "Turns",
    "assert_valid",
    "fault_plans",
    "faults",
    "operations",
    "schedules",
    "seeds",
    "simulate_plan",
    "simulation_settings",
    "workload_options",
]

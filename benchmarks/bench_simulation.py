"""How fast simulated time passes: one process, the scenario partition-controller, all traces and checks on.

Three brokers, three ZooKeeper servers, 50 client operations per second. Kafka's codec and messages by reference take
turns, a batch of seeds each, in the order A B B A, so that a slow hour of the machine hits both; each batch begins with
a run that is not measured, because messages of the other kind have just left the processor's caches. Required of one
core: at least 10 simulated seconds per real second with the codec, at least 25 without. The best run is the one that
other work on the machine disturbed least; far from the median, it says that the medians were taken in a bad hour.
"""

from __future__ import annotations

import gc
import logging
import time
from dataclasses import dataclass, replace
from random import Random
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from nemesis.checkers.framework.model import Verdict
from nemesis.faults import plan as plans
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios import scenario
from nemesis.searching.simulate import simulate

CODEC, BY_REFERENCE = "Kafka's codec", "by reference"
BATCHES = (
    (CODEC, range(1, 5)),
    (BY_REFERENCE, range(1, 5)),
    (BY_REFERENCE, range(5, 9)),
    (CODEC, range(5, 9)),
)
REQUIRED = {CODEC: 10.0, BY_REFERENCE: 25.0}
INTERVAL_MS = 130
"""Of each of the eight clients: what is lost to faults and to the phases without load makes 50 operations of 62."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What one run took."""

    virtual_s: float
    real_s: float
    processor_s: float
    check_s: float
    operations: int


def main() -> None:
    """Run the batches, print a table."""
    logging.disable(logging.ERROR)
    runs: dict[str, list[Speed]] = {name: [] for name in REQUIRED}
    for name, seeds in BATCHES:
        measure(0, name)
        runs[name] += [measure(seed, name) for seed in seeds]
    table = Table(
        "messages",
        "simulated s",
        "real s",
        "of it check",
        "processor s",
        "ratio to real s",
        "best",
        "operations/s",
        "required",
    )
    for name, simulated_runs in runs.items():
        ratios = [run.virtual_s / run.real_s for run in simulated_runs]
        ratio = median(ratios)
        table.add_row(
            name,
            f"{median(run.virtual_s for run in simulated_runs):.0f}",
            f"{median(run.real_s for run in simulated_runs):.2f}",
            f"{median(run.check_s for run in simulated_runs):.2f}",
            f"{median(run.processor_s for run in simulated_runs):.2f}",
            f"{ratio:.1f}",
            f"{max(ratios):.1f}",
            f"{median(run.operations / run.virtual_s for run in simulated_runs):.0f}",
            f"{REQUIRED[name]:g}: {'yes' if ratio >= REQUIRED[name] else 'NO'}",
        )
    Console(width=110).print(table)


def measure(seed: int, messages: str) -> Speed:
    """Run one seed, and take away what it leaves. Raises RuntimeError when the run is not valid."""
    asked = replace(spec(seed), real_codec=messages == CODEC)
    started, used = time.perf_counter(), time.process_time()
    run = simulate(asked)
    gc.collect(0)
    real_s, processor_s = time.perf_counter() - started, time.process_time() - used
    if run.outcome.verdict is not Verdict.VALID:
        raise RuntimeError(f"seed {seed} is {run.outcome.verdict}: its speed says nothing")
    return Speed(run.virtual_s, real_s, processor_s, run.outcome.seconds, len(run.issued))


def spec(seed: int) -> SimulationSpec:
    """The default run of a seed, with the load that is required."""
    chosen = scenario.override(scenario.load("partition-controller"), runtime="simulation")
    pace = {"send_interval_ms": INTERVAL_MS, "poll_interval_ms": INTERVAL_MS}
    options = {**chosen.simulation.options, **pace}
    chosen = msgspec.structs.replace(
        chosen, simulation=msgspec.structs.replace(chosen.simulation, options=options)
    )
    plan = plans.derive(
        Random(f"{seed}/plan"),
        chosen.plan_settings(),
        start_s=chosen.phases.warm_up_s,
        end_s=chosen.faults_end_s,
    )
    return SimulationSpec(scenario=chosen, seed=seed, plan=plan)


if __name__ == "__main__":
    main()

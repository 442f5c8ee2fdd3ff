"""How fast simulated time passes: one process, the scenario partition-controller, all traces and checks on.

Three brokers, three ZooKeeper servers, about 50 client operations per second. Each seed is run twice, with Kafka's
codec and with messages by reference, so that a slow moment of the machine hits both. Required of one core: at least 10
simulated seconds per real second with the codec, at least 25 without.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from checkers.model import Verdict
from nemesis import scenario
from nemesis.faults import plan as plans
from nemesis.simulation.order import SimulationOrder
from nemesis.simulation.run import Simulated, simulate

SEEDS = range(1, 9)
REQUIRED = {"Kafka's codec": 10.0, "by reference": 25.0}


def main() -> None:
    """Run the seeds, print a table."""
    logging.disable(logging.ERROR)
    simulate(order(0))  # imports and compiled codecs
    runs: dict[str, list[Simulated]] = {name: [] for name in REQUIRED}
    for seed in SEEDS:
        for name in REQUIRED:
            runs[name].append(simulate(replace(order(seed), real_codec=name != "by reference")))
    table = Table(
        "messages", "simulated s", "real s", "of it check", "ratio", "operations/s", "required"
    )
    for name, found in runs.items():
        if any(run.outcome.verdict is not Verdict.VALID for run in found):
            raise RuntimeError("a run was not valid: its speed says nothing")
        ratio = median(run.virtual_s / run.real_s for run in found)
        table.add_row(
            name,
            f"{median(run.virtual_s for run in found):.0f}",
            f"{median(run.real_s for run in found):.2f}",
            f"{median(run.outcome.seconds for run in found):.2f}",
            f"{ratio:.1f}",
            f"{median(len(run.issued) / run.virtual_s for run in found):.0f}",
            f"{REQUIRED[name]:g}: {'yes' if ratio >= REQUIRED[name] else 'NO'}",
        )
    Console(width=110).print(table)


def order(seed: int) -> SimulationOrder:
    """The default run of a seed."""
    chosen = scenario.override(scenario.load("partition-controller"), runtime="simulation")
    plan = plans.derive(
        Random(f"{seed}/plan"),
        chosen.plan_settings(),
        start_s=chosen.phases.warm_up_s,
        end_s=chosen.faults_end_s,
    )
    return SimulationOrder(scenario=chosen, seed=seed, plan=plan)


if __name__ == "__main__":
    main()

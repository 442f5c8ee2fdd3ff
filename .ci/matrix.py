"""The nightly matrix, from scenarios, runtimes and faults, as one line of JSON for the workflow.

    .venv/bin/python .ci/matrix.py --seeds 12

Every scenario of the reference runs on every runtime, with its own faults. A run takes all faults that the machine can
do (`--faults all`) where the runtime cannot do one of the scenario's own, or a machine may lack the disks for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from nemesis.faults import FAULTS
from nemesis.faults.availability import kinds_of
from nemesis.interfaces.disks import Disks, PowerSupply
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.scenarios import scenario
from nemesis.support.runtime_names import DOCKER

SIMULATED_SEEDS = 200
DISKS = frozenset({Disks, PowerSupply})
"""Parts that containers have only where the machine has loop devices and ext4."""


def main(arguments: Sequence[str]) -> int:
    """Print the matrix; return the exit code."""
    parser = argparse.ArgumentParser(prog="matrix.py")
    parser.add_argument("--seeds", type=int, default=12, help="on each runtime of real processes")
    options = parser.parse_args(arguments)
    print(json.dumps({"include": matrix(options.seeds)}))
    return 0


def matrix(seeds: int) -> list[dict[str, str]]:
    """Return the jobs, each with the values that the workflow and ``chaos.py`` take."""
    return [
        {
            "scenario": name,
            "runtime": runtime,
            "faults": "" if runs_its_own(name, runtime) else "--faults all",
            "seeds": str(SIMULATED_SEEDS if kind.real_time is None else seeds),
        }
        for name in scenario.names_for("reference")
        for runtime, kind in RUNTIMES.items()
    ]


def runs_its_own(name: str, runtime: str) -> bool:
    """Return whether every machine of CI can do all faults of the scenario on the runtime."""
    kinds = scenario.load(name).faults.kinds
    needs_machine = runtime == DOCKER and any(FAULTS[kind].needs & DISKS for kind in kinds)
    return not needs_machine and set(kinds) <= set(kinds_of(runtime))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

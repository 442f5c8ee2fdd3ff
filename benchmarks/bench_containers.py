"""What a run in containers costs beside the same run on processes: start, stop, and all that is not the time limit.

The main job, as a user runs it, on both runtimes in turn. Required of containers: up in 20 s, down in 10 s, and less
than 45 s of a run over its time limit, verdict and report included; the image has less than 500 MB.

Needs a Docker engine and root. The image is built before anything is measured.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from nemesis.history.run_directory import RunDirectory
from nemesis.runtimes.docker.engine import connect
from nemesis.runtimes.docker.image import ensure_image

RUNTIMES: Final = ("local", "docker")
ROUNDS: Final = 3
TIME_LIMIT_S: Final = 60
PHASES: Final = ("start", "stop", "ingest", "check")
OVER: Final = "over the time limit"
REQUIRED_S: Final[Mapping[str, float]] = {"start": 20, "stop": 10, OVER: 45}
REQUIRED_MB: Final = 500


def main() -> None:
    """Run the rounds, print a table."""
    with closing(connect()) as client:
        tag = ensure_image(client, progress=print)
        image_mb = client.images.get(tag).attrs["Size"] / 1e6
    rounds = [{runtime: measure(runtime, seed) for runtime in RUNTIMES} for seed in range(ROUNDS)]
    table = Table("seconds, median", *RUNTIMES, "range on docker", "required")
    for phase in (*PHASES, OVER):
        took = {runtime: [round_[runtime][phase] for round_ in rounds] for runtime in RUNTIMES}
        table.add_row(
            phase,
            *(f"{median(took[runtime]):.1f}" for runtime in RUNTIMES),
            f"{min(took['docker']):.1f} to {max(took['docker']):.1f}",
            f"{REQUIRED_S[phase]:g}" if phase in REQUIRED_S else "",
        )
    Console(width=100).print(table)
    print(f"The image has {image_mb:.0f} MB; required are less than {REQUIRED_MB}.")


def measure(runtime: str, seed: int) -> dict[str, float]:
    """Run the main job once; return the seconds that each phase took, and all of it beyond the time limit."""
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as store:
        options = ["--runtime", runtime, "--seed", str(seed), "--time-limit", str(TIME_LIMIT_S)]
        command = [sys.executable, "-m", "nemesis", "run", "partition-controller", *options]
        begin = time.monotonic()
        ran = subprocess.run(
            [*command, "--store", store], check=False, capture_output=True, text=True
        )
        whole_s = time.monotonic() - begin
        if ran.returncode != 0:
            raise RuntimeError(f"a run on {runtime} was not valid: {ran.stdout}{ran.stderr}")
        durations_s = RunDirectory.open(Path(store) / "latest").read_info().durations_s
    return {**{phase: durations_s[phase] for phase in PHASES}, OVER: whole_s - TIME_LIMIT_S}


if __name__ == "__main__":
    main()

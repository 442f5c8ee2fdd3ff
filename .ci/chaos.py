"""One night of chaos: many seeds of a scenario on a runtime, those that failed the last time first.

    .venv/bin/python .ci/chaos.py partition-controller docker --seeds 8 --first-seed 1000 --out chaos
    .venv/bin/python .ci/chaos.py machine-faults docker --faults all
    .venv/bin/python .ci/chaos.py partition-controller local -- --target kafka --kafka-version 3.9.1

In the output directory, kept up to date after each seed, so that a night that is broken off still tells:

* ``summary.md``           a table of seeds, verdicts and how to repeat each run
* ``failing-seeds.txt``    a seed to a line; the next night reads it, and drops those that no longer fail
* ``seed-N/``              report, JUnit, results and plan; all that was recorded when the verdict was not `valid`

Exit code: 1 when a seed failed (a property broke, or the harness crashed) or none was `valid`, 254 when nothing can be
run, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

NEMESIS = (sys.executable, "-m", "nemesis")
KEPT_OF_A_VALID_RUN = ("report.html", "junit.xml", "results.json", "plan.yaml", "run.json")
FAILING_SEEDS = "failing-seeds.txt"
SEED_TIMEOUT_S = 900.0
EXIT_FAILED = 1
EXIT_USAGE = 254
VERDICTS = {0: "valid", 1: "invalid", 2: "unknown"}
CRASHED = "crashed"
FAILURES = ("invalid", CRASHED)


@dataclass(frozen=True)
class Night:
    """What was asked for."""

    scenario: str
    runtime: str
    out: Path
    time_limit_s: float | None = None
    faults: str | None = None
    further: tuple[str, ...] = ()
    """Further arguments of ``nemesis run``."""

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``nemesis`` for each seed, but for the seed."""
        arguments = ["run", self.scenario, "--runtime", self.runtime]
        if self.faults is not None:
            arguments += ["--faults", self.faults]
        if self.time_limit_s is not None:
            arguments += ["--time-limit", f"{self.time_limit_s:g}"]
        return [*arguments, *self.further]


@dataclass(frozen=True)
class Outcome:
    """What became of a seed. ``broken`` are the properties that did not hold, or what the harness said at its end."""

    seed: int
    verdict: str
    broken: str
    seconds: float

    @property
    def has_failed(self) -> bool:
        return self.verdict in FAILURES


class NothingRuns(Exception):
    """The scenario, the runtime or the machine is not fit for any seed; says why."""


def main(arguments: Sequence[str]) -> int:
    """Run the night; return the exit code."""
    options = parse(arguments)
    night = Night(
        options.scenario,
        options.runtime,
        options.out,
        options.time_limit,
        options.faults,
        tuple(options.further),
    )
    night.out.mkdir(parents=True, exist_ok=True)
    fresh = range(options.first_seed, options.first_seed + options.seeds)
    outcomes: list[Outcome] = []
    before = read_seeds(night.out / FAILING_SEEDS)
    seeds = in_order(before, fresh)
    for seed in seeds:
        try:
            outcome = run_seed(night, seed)
        except NothingRuns as error:
            sys.stderr.write(f"chaos: {error}\n")
            return EXIT_USAGE
        outcomes.append(outcome)
        print(
            f"seed {seed}: {outcome.verdict}, {outcome.seconds:.0f} s {outcome.broken}", flush=True
        )
        not_yet = [s for s in before if s not in {o.seed for o in outcomes}]
        failing = [o.seed for o in outcomes if o.has_failed]
        write_lines(night.out / FAILING_SEEDS, map(str, in_order(failing, not_yet)))
        write_lines(night.out / "summary.md", summary(night, outcomes, planned=len(seeds)))
    return EXIT_FAILED if has_failed(outcomes) else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exits with 2 and a sentence when it is wrong."""
    parser = argparse.ArgumentParser(prog="chaos.py")
    parser.add_argument("scenario")
    parser.add_argument("runtime")
    parser.add_argument("--seeds", type=int, default=8, help="so many new ones")
    parser.add_argument("--first-seed", type=int, default=1, help="the first new one")
    parser.add_argument("--time-limit", type=float, help="of each run, in seconds")
    parser.add_argument("--faults", help="other kinds than the scenario's, as `nemesis run` takes")
    parser.add_argument("--out", type=Path, default=Path("chaos"))
    own = list(arguments)
    further: list[str] = []
    if "--" in own:
        position = own.index("--")
        own, further = own[:position], own[position + 1 :]
    return parser.parse_args(own, argparse.Namespace(further=further))


def run_seed(night: Night, seed: int) -> Outcome:
    """Run one seed and keep what is worth keeping; raises ``NothingRuns``."""
    store = night.out / "store"
    command = [*NEMESIS, *night.arguments, "--seed", str(seed), "--store", str(store), "--json"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SEED_TIMEOUT_S, check=False
        )
        code, said, complaint = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, said, complaint = -1, "", f"not done after {SEED_TIMEOUT_S:.0f} s"
    if code == EXIT_USAGE:
        raise NothingRuns(last_line(complaint))
    verdict = VERDICTS.get(code, CRASHED)
    broken = broken_properties(said) if verdict in VERDICTS.values() else last_line(complaint)
    if verdict == CRASHED:  # it may have left its cluster, which the next seed shall not meet
        subprocess.run([*NEMESIS, "clean"], stdout=subprocess.DEVNULL, check=False)
    store_run(store, night.out / f"seed-{seed}", is_whole=verdict != "valid")
    return Outcome(seed, verdict, broken, time.monotonic() - began)


def store_run(store: Path, run_directory: Path, *, is_whole: bool) -> None:
    """Move the store's newest run to its place, or what matters of it, and empty the store."""
    shutil.rmtree(run_directory, ignore_errors=True)
    runs = sorted((run for run in store.glob("*/*") if run.is_dir()), key=os.path.getmtime)
    for run in (run for run in runs[-1:] if not run.parent.is_symlink()):
        if is_whole:
            shutil.move(run, run_directory)
            continue
        run_directory.mkdir()
        for name in KEPT_OF_A_VALID_RUN:
            if (run / name).is_file():
                shutil.copy2(run / name, run_directory / name)
    shutil.rmtree(store, ignore_errors=True)


def broken_properties(said: str) -> str:
    """Return the properties that were not valid, and their first findings, from what `nemesis run --json` printed."""
    results = json.loads(said)["outcome"]["results"]
    parts = []
    for result in results:
        if result["verdict"] == "valid":
            continue
        first = next((f": {finding['sentence']}" for finding in result["findings"]), "")
        parts.append(f"{result['property']} {result['verdict']}{first}")
    return "; ".join(parts)


def has_failed(outcomes: Sequence[Outcome]) -> bool:
    """Whether the night is to be looked at: a seed failed, or so many were `unknown` that none was `valid`."""
    return any(o.has_failed for o in outcomes) or all(o.verdict != VERDICTS[0] for o in outcomes)


def in_order(first: Iterable[int], then: Iterable[int]) -> list[int]:
    """Return both, each number once."""
    return list(dict.fromkeys((*first, *then)))


def read_seeds(file: Path) -> list[int]:
    """Return the seeds of a file; none when it is not there. Lines that hold no seed are left out."""
    if not file.is_file():
        return []
    return [int(line) for line in file.read_text().split() if line.isdecimal()]


def summary(night: Night, outcomes: Sequence[Outcome], *, planned: int) -> Iterable[str]:
    """Yield the lines of the table, failures first."""
    counts = [f"{sum(o.verdict == v for o in outcomes)} {v}" for v in (*VERDICTS.values(), CRASHED)]
    about = " ".join((night.runtime, *night.further))
    yield f"### {night.scenario} on {about}: {', '.join(counts)} of {planned} seeds"
    yield ""
    yield "| seed | verdict | seconds | what did not hold | again |"
    yield "|---|---|---|---|---|"
    for outcome in sorted(outcomes, key=lambda o: (o.verdict == "valid", not o.has_failed)):
        again = shlex.join(["nemesis", *night.arguments, "--seed", str(outcome.seed)])
        broken = outcome.broken.replace("|", "\\|")
        yield f"| {outcome.seed} | {outcome.verdict} | {outcome.seconds:.0f} | {broken} | `{again}` |"


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Write a text file, whole or not at all."""
    draft = file.with_suffix(".draft")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.replace(file)


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

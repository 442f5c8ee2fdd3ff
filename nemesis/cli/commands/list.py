"""``nemesis list``: what there is to choose from."""

from __future__ import annotations

from nemesis.checkers import CHECKERS, FOREIGN, foreign_properties
from nemesis.cli.console import out, say_json
from nemesis.cli.options import Json
from nemesis.faults import FAULTS
from nemesis.mutants import MUTANTS
from nemesis.scenarios import scenario
from nemesis.support.choices import RUNTIMES
from nemesis.targets import TARGETS
from nemesis.workloads import WORKLOADS


def list_everything(as_json: Json = False) -> None:
    """Name scenarios, targets, runtimes, faults, workloads, checkers, foreign workloads, mutants."""
    found: dict[str, dict[str, str]] = {
        "scenarios": {name: scenario.load(name).summary for name in scenario.names()},
        "targets": dict.fromkeys(TARGETS, ""),
        "runtimes": dict.fromkeys(RUNTIMES, ""),
        "faults": {name: fault.summary for name, fault in FAULTS.items()},
        "workloads": dict.fromkeys(WORKLOADS, ""),
        "checkers": dict.fromkeys(CHECKERS, ""),
        "foreign": {name: ", ".join(foreign_properties(name)) for name in FOREIGN},
        "mutants": {name: mutant.story for name, mutant in MUTANTS.items()},
    }
    if as_json:
        say_json({axis: list(names) for axis, names in found.items()})
        return
    for axis, names in found.items():
        out.print(f"{axis}:")
        for name, summary in names.items():
            out.print(f"  {name:<32} {summary}".rstrip())

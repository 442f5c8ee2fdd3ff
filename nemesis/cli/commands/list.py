"""``nemesis list``: what there is to choose from."""

from __future__ import annotations

from nemesis.checkers import FOREIGN, foreign_properties, judged_by_default, not_observed
from nemesis.checkers.cycles.asked_anomalies import ASKED
from nemesis.checkers.foreign import decided_in
from nemesis.cli.console import out, say_json
from nemesis.cli.options import Json
from nemesis.faults import FAULTS
from nemesis.faults.availability import runtimes_of
from nemesis.faults.base import Fault
from nemesis.history.sources import EventSource
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.scenarios import scenario
from nemesis.scenarios.axes import AXES
from nemesis.targets import TARGETS, Target


def list_everything(as_json: Json = False) -> None:
    """List scenarios, targets, runtimes, faults, workloads, checkers, mutants, and what judges external histories.

    Each with one line about it; with ``--json`` as an object of names and lines for each axis.
    """
    listed: dict[str, dict[str, str]] = {
        "scenarios": {name: scenario.load(name).summary for name in scenario.names()},
        **{
            axis: {name: _summary(entry) for name, entry in known.items()}
            for axis, known in AXES.items()
        },
        "targets": {name: _target_summary(target) for name, target in TARGETS.items()},
        "faults": {name: _fault_summary(kind) for name, kind in FAULTS.items()},
        "foreign": {name: ", ".join(foreign_properties(name)) for name in FOREIGN},
        "anomalies": {name: ", ".join(sorted(counted)) for name, counted in ASKED.items()},
        "foreign checkers": {
            decided.name: decided.summary
            for workload in FOREIGN
            for decided in decided_in(workload)
        },
    }
    if as_json:
        say_json(listed)
        return
    for axis, names in listed.items():
        out.print(f"{axis}:")
        for name, summary in names.items():
            out.print(f"  {name:<32} {summary}".rstrip())


def _fault_summary(kind: type[Fault]) -> str:
    """Return what the fault does, and the runtimes that can do it when these are not all."""
    runtimes = runtimes_of(kind)
    return kind.summary + ("" if runtimes == list(RUNTIMES) else f" ({', '.join(runtimes)})")


def _target_summary(target: Target) -> str:
    """Return which sources of events the target has, and how many properties it therefore does not show."""
    listed = ", ".join(source.value for source in EventSource if source in target.observes)
    hidden = len(not_observed(judged_by_default(target.observes), target.observes))
    return f"observes {listed}" + (f"; {hidden} properties are not observed" if hidden else "")


def _summary(entry: object) -> str:
    """Return an object's own line about itself; empty when it has none."""
    return str(getattr(entry, "summary", ""))

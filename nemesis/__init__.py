"""Fault injection and verification for Kafka and systems like it.

For notebooks and tests, a few names load on first use, and ``import nemesis`` alone loads nothing else:

* ``load_scenario(name)``, ``derive_plan(rng, settings, ...)``   what is run, and what breaks when
* ``SimulationSpec``, ``simulate(spec)``                  a whole run in this process, on virtual time, and its verdict
* ``RunDirectory``, ``judge(run)``                        a stored run, and its verdict and report
* ``open_history(path)``, ``select()``, ``check(history, checks)``   a history, and the checks of its properties
* ``Outcome``, ``Verdict``, ``Finding``                   what a check returns

Property tests with Hypothesis: ``nemesis.testing``. Packages, lowest first:

* ``registry``, ``history``, ``checkers``, ``workloads``, ``reference``, ``reports``   the folders beside the harness
* ``support``      errors, exit codes, the undo journal; ``mutants`` planted bugs, one module each
* ``interfaces``   what a runtime offers; ``targets`` what is run: the reference cluster, Apache Kafka
* ``simulation``   the simulated world; ``runtimes`` where a cluster runs: processes, containers, simulation
* ``faults``       what is broken: plans, selectors, measured effects; ``scenarios`` a value on every axis
* ``running``      one run from a request to a recorded history; ``judging`` from there to verdict and report
* ``searching``    many simulated runs in search of a finding: explore, shrink, replay, scoreboard
* ``testing``      the simulated cluster in a user's own tests; ``cli`` the command line (start there)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nemesis.checkers import select
    from nemesis.checkers.checking import check
    from nemesis.checkers.framework.model import Finding, Outcome, Verdict
    from nemesis.faults.plan import derive as derive_plan
    from nemesis.history.reader import open_history
    from nemesis.history.run_directory import RunDirectory
    from nemesis.judging.judge import judge
    from nemesis.running.simulated.specification import SimulationSpec
    from nemesis.scenarios.scenario import load as load_scenario
    from nemesis.searching.simulate import simulate

__all__ = [
    "Finding",
    "Outcome",
    "RunDirectory",
    "SimulationSpec",
    "Verdict",
    "check",
    "derive_plan",
    "judge",
    "load_scenario",
    "open_history",
    "select",
    "simulate",
]

_HOMES = {
    "Finding": ("nemesis.checkers.framework.model", "Finding"),
    "Outcome": ("nemesis.checkers.framework.model", "Outcome"),
    "RunDirectory": ("nemesis.history.run_directory", "RunDirectory"),
    "SimulationSpec": ("nemesis.running.simulated.specification", "SimulationSpec"),
    "Verdict": ("nemesis.checkers.framework.model", "Verdict"),
    "check": ("nemesis.checkers.checking", "check"),
    "derive_plan": ("nemesis.faults.plan", "derive"),
    "judge": ("nemesis.judging.judge", "judge"),
    "load_scenario": ("nemesis.scenarios.scenario", "load"),
    "open_history": ("nemesis.history.reader", "open_history"),
    "select": ("nemesis.checkers", "select"),
    "simulate": ("nemesis.searching.simulate", "simulate"),
}
"""Public name -> module and the name there. ``tests/nemesis/test_public_names.py`` keeps the three lists equal."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    loaded = getattr(import_module(module), attribute)
    globals()[name] = loaded
    return loaded


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The directory of a new run: ``run.json`` says what is run, ``plan.yaml`` what will be broken.

The same for a run that is about to begin, in real time or in virtual, and for a simulated one that is over.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.sources import EventSource
from nemesis.mutants.chosen import ChosenMutant
from nemesis.running.mutant_choice import file_info, store_mutant_file
from nemesis.running.timeout_settings import timeout_settings
from nemesis.running.versions import versions
from nemesis.scenarios.scenario import Scenario
from nemesis.support.detection import undetectable
from nemesis.support.paths import short
from nemesis.targets.base import controllers_of


class RunParameters(Protocol):
    """What a request for a real run and a specification of a simulated one both state."""

    @property
    def scenario(self) -> Scenario: ...
    @property
    def seed(self) -> int: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def mutant(self) -> ChosenMutant | None: ...
    @property
    def checkers(self) -> Sequence[str] | None: ...


def replay_command(run: RunDirectory) -> str:
    """Return the command that repeats a simulated run."""
    return shlex.join(["nemesis", "replay", short(run.path)])


def create_run_directory(
    request: RunParameters,
    store: Path,
    command_line: Sequence[str],
    *,
    simulation: dict[str, Any],
    left_out: Mapping[str, list[str]] | None = None,
    replay: Callable[[RunDirectory], str] = replay_command,
) -> RunDirectory:
    """Make the directory in the store; raises OSError, and then nothing is left of it.

    ``simulation`` and ``left_out`` are those of ``RunInfo``; ``replay`` returns the command that repeats the run.
    """
    scenario = request.scenario
    info = RunInfo(
        scenario=scenario.name,
        seed=request.seed,
        target=scenario.target,
        observes=tuple(
            source for source in EventSource if source in scenario.chosen_target.observes
        ),
        runtime=scenario.runtime,
        mutant=None if request.mutant is None else request.mutant.name,
        mutant_file=file_info(request.mutant),
        brokers=scenario.brokers,
        zookeepers=scenario.zookeepers,
        controllers=controllers_of(scenario.chosen_target),
        time_limit_s=scenario.time_limit_s,
        command_line=list(command_line),
        plan=plans.encode(request.plan),
        left_out=dict(left_out or {}),
        undetectable=undetectable(plans.encode(request.plan), timeout_settings(scenario)),
        checkers=list(request.checkers or ()),
        versions=versions(scenario.runtime, has_zookeeper=scenario.zookeepers > 0),
        config=msgspec.to_builtins(scenario),
        simulation=simulation,
    )
    run = RunDirectory.create(store, info)
    try:
        plans.write(run.path / plans.FILE_NAME, request.plan)
        store_mutant_file(run, request.mutant)
        run.write_info(msgspec.structs.replace(run.read_info(), replay=replay(run)))
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run

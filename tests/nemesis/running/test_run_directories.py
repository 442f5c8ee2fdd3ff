"""The directory of a new run says everything that is needed to repeat it, or it is not there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from nemesis.faults import plan as plans
from nemesis.history.run_directory import RunDirectory
from nemesis.running.run_directories import create_run_directory
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.stored import encode_spec, read_spec
from nemesis.scenarios import scenario

CHOSEN = scenario.override(scenario.load("partition-controller"), runtime="simulation")
SPEC = SimulationSpec(scenario=CHOSEN, seed=7, plan=(), checkers=("lost-write",))


def test_what_was_ordered_can_be_read_back(tmp_path: Path) -> None:
    run = create_run_directory(SPEC, tmp_path, ["nemesis", "run"], simulation=encode_spec(SPEC))
    assert read_spec(run) == (SPEC, None)
    assert plans.read(run.path / plans.FILE_NAME) == SPEC.plan
    info = run.read_info()
    assert info.command_line == ["nemesis", "run"]
    assert shlex.split(info.replay) == ["nemesis", "replay", str(run.path)]


def test_of_a_run_that_cannot_be_written_nothing_is_left(tmp_path: Path) -> None:
    made: list[Path] = []

    def full(run: RunDirectory) -> str:
        made.append(run.path)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        create_run_directory(SPEC, tmp_path, [], simulation={}, replay=full)
    assert made
    assert not made[0].exists()

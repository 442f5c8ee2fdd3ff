"""The planted bug of a run: what the command line accepts, and what a stored run keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.history.errors import DamagedHistoryError
from nemesis.history.run_directory import RunDirectory
from nemesis.mutants.chosen import ChosenMutant
from nemesis.running.mutant_choice import argument_in, mutant_of_argument, stored_mutant
from nemesis.running.preflight import RunOptions, create_run_directory, prepare
from nemesis.searching.replay import rerun_arguments
from nemesis.support.errors import UsageError
from tests.nemesis.mutants.bug_files import BUG, NAME, write_bug


@pytest.fixture
def bug(tmp_path: Path) -> Path:
    return write_bug(tmp_path)


@pytest.fixture
def options(tmp_path: Path, bug: Path) -> RunOptions:
    return RunOptions(
        scenario="partition-controller",
        store=tmp_path / "store",
        runtime="local",
        seed=1,
        mutant=str(bug),
    )


@pytest.fixture
def stored(options: RunOptions) -> RunDirectory:
    return create_run_directory(prepare(options), ["nemesis", "run"])


def test_a_bug_is_chosen_by_name_or_by_file(bug: Path) -> None:
    assert mutant_of_argument(None) is None
    assert mutant_of_argument("truncate-to-hw") == ChosenMutant("truncate-to-hw")
    chosen = mutant_of_argument(str(bug))
    assert chosen is not None
    assert (chosen.name, chosen.argument) == (NAME, str(bug))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("leader-epoch-grows", "luck", r"bug\.py: unknown checker 'luck': allowed are "),
        ("replacements=", "scenario='moon', replacements=", r"bug\.py: .*scenario 'moon'"),
        ("MUTANT =", "BUG =", r"bug\.py: expected MUTANT = "),
    ],
)
def test_a_wrong_file_is_a_usage_error(bug: Path, old: str, new: str, sentence: str) -> None:
    bug.write_text(BUG.replace(old, new))
    with pytest.raises(UsageError, match=sentence):
        mutant_of_argument(str(bug))


def test_an_unknown_name_lists_the_known_ones_and_mentions_files() -> None:
    with pytest.raises(UsageError, match=r"unknown mutant 'hm'.*truncate-to-hw.*; or a file, such"):
        mutant_of_argument("hm")


def test_containers_do_not_have_the_file(options: RunOptions) -> None:
    with pytest.raises(UsageError, match=r"bug\.py: the runtime docker plants only bugs of nem"):
        prepare(replace(options, runtime="docker"))


def test_a_run_keeps_the_file_its_path_and_its_hash(stored: RunDirectory, bug: Path) -> None:
    info = stored.read_info()
    assert info.mutant == NAME
    assert info.mutant_file["path"] == str(bug)
    assert stored.mutant_file.read_text() == BUG
    assert stored_mutant(stored) == mutant_of_argument(str(bug))


def test_a_run_needs_the_file_no_longer(stored: RunDirectory, bug: Path) -> None:
    bug.unlink()
    mutant = stored_mutant(stored)
    assert mutant is not None
    assert mutant.load().name == NAME


def test_a_copy_that_was_changed_or_removed_is_refused(stored: RunDirectory) -> None:
    stored.mutant_file.write_text(BUG + "\n")
    with pytest.raises(DamagedHistoryError, match=r"mutant\.py: expected the file that the run"):
        stored_mutant(stored)
    stored.mutant_file.unlink()
    with pytest.raises(DamagedHistoryError, match=r"mutant\.py: expected a file .*: choose a file"):
        stored_mutant(stored)


def test_real_brokers_plant_the_copy_of_the_run(stored: RunDirectory) -> None:
    assert argument_in(stored.path, stored_mutant(stored)) == str(stored.mutant_file)
    assert argument_in(stored.path, ChosenMutant("truncate-to-hw")) == "truncate-to-hw"
    assert argument_in(stored.path, None) is None


def test_a_real_run_is_run_again_with_the_file_that_lies_with_it(
    stored: RunDirectory, tmp_path: Path
) -> None:
    moved = RunDirectory(stored.path.rename(tmp_path / "moved"))
    arguments = rerun_arguments(moved)
    assert arguments[arguments.index("--mutant") + 1] == str(moved.mutant_file)

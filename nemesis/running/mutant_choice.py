"""The planted bug of a run: chosen by a user, stored with the run, and read back from the run alone.

``run.json`` states the bug's name. Of a bug from a file it also states the file's path and hash, and ``mutant.py`` in
the run's directory is a copy of the file.
"""

from __future__ import annotations

from pathlib import Path

from nemesis.checkers import CHECKERS
from nemesis.history.errors import DamagedHistoryError
from nemesis.history.run_directory import RunDirectory
from nemesis.mutants import MutantError
from nemesis.mutants.chosen import ChosenMutant, choose_mutant
from nemesis.mutants.mutant_file import MutantFile, read_mutant_file
from nemesis.scenarios import scenario
from nemesis.support.choices import choose
from nemesis.support.errors import UsageError


def mutant_of_argument(argument: str | None) -> ChosenMutant | None:
    """Return the bug that ``--mutant`` names; raises ``UsageError``."""
    if argument is None:
        return None
    try:
        chosen = choose_mutant(argument)
        mutant = chosen.load()
    except MutantError as error:
        raise UsageError(str(error)) from None
    if chosen.file is not None:
        try:
            choose(CHECKERS, mutant.property)
            scenario.load(mutant.scenario)
        except UsageError as error:
            raise UsageError(f"{argument}: {error}") from None
    return chosen


def file_info(mutant: ChosenMutant | None) -> dict[str, str]:
    """Return ``RunInfo.mutant_file`` of this bug."""
    file = None if mutant is None else mutant.file
    return {} if file is None else {"path": file.path, "sha256": file.sha256}


def store_mutant_file(run: RunDirectory, mutant: ChosenMutant | None) -> None:
    """Write the copy of the bug's file into the run's directory, if the bug is from one; raises OSError."""
    if mutant is not None and mutant.file is not None:
        run.mutant_file.write_bytes(mutant.file.text.encode())


def argument_in(run_directory: Path, mutant: ChosenMutant | None) -> str | None:
    """Return what ``--mutant`` of a broker's process gets: a name, or the copy in the run's directory."""
    if mutant is None or mutant.file is None:
        return None if mutant is None else mutant.name
    return str(RunDirectory(run_directory).mutant_file)


def stored_mutant(run: RunDirectory) -> ChosenMutant | None:
    """Return the bug of a stored run; raises ``DamagedHistoryError`` when it cannot be planted any more."""
    info = run.read_info()
    if info.mutant is None:
        return None
    try:
        file = _stored_file(run, info.mutant_file) if info.mutant_file else None
        chosen = ChosenMutant(info.mutant, file)
        chosen.load()
    except MutantError as error:
        raise DamagedHistoryError(f"{run.info_file} is damaged: {error}") from None
    return chosen


def _stored_file(run: RunDirectory, info: dict[str, str]) -> MutantFile:
    """Return the copy under the path of the original; raises ``MutantError``."""
    copy = read_mutant_file(str(run.mutant_file))
    if copy.sha256 != info.get("sha256"):
        raise MutantError(
            f"{copy.path}: expected the file that the run has planted, got another one: restore it"
        )
    copy.try_to_plant()
    return MutantFile(info.get("path", copy.path), copy.text)

"""The bug that a run carries, as a user chose it: by the name of a planted bug, or by a file outside the package."""

from __future__ import annotations

from dataclasses import dataclass

from nemesis.mutants import MUTANTS, Mutant, MutantError
from nemesis.mutants.mutant_file import SUFFIX, MutantFile, read_mutant_file
from nemesis.registry import UnknownNameError


@dataclass(frozen=True, slots=True)
class ChosenMutant:
    """Which bug a run carries. Can be sent to another process, which loads the same bug."""

    name: str
    file: MutantFile | None = None
    """None: the planted bug of this name."""

    @property
    def argument(self) -> str:
        """What ``--mutant`` has to be given to choose the same bug again."""
        return self.name if self.file is None else self.file.path

    def load(self) -> Mutant:
        """Return the mutant; a file is executed each time. Raises ``MutantError``."""
        if self.file is not None:
            return self.file.load()
        try:
            return MUTANTS.find(self.name)
        except UnknownNameError as error:
            raise MutantError(str(error)) from None


def choose_mutant(argument: str) -> ChosenMutant:
    """Return the bug of this name, or of this file if it ends with ``.py``; raises ``MutantError`` when it cannot be
    planted.
    """
    if not argument.endswith(SUFFIX):
        chosen = ChosenMutant(argument)
        try:
            chosen.load()
        except MutantError as error:
            raise MutantError(f"{error}; or a file, such as bug{SUFFIX}") from None
        return chosen
    file = read_mutant_file(argument)
    return ChosenMutant(file.try_to_plant().name, file)

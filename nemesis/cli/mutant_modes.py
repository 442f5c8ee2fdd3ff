"""The modes of ``nemesis mutants``, and the options that only some of them have.

An option that the mode does not have would be ignored without a word; it is refused instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from nemesis.support.errors import UsageError


class Mode(Enum):
    """What a call of ``nemesis mutants`` does. The value names the mode in messages."""

    PLANTED = "the search of planted bugs"
    GENERATED = "--generated"
    AGAINST_BLIND = "--against-blind"


MODES_OF: Final[Mapping[str, tuple[Mode, ...]]] = {
    "--mutant": (Mode.PLANTED, Mode.AGAINST_BLIND),
    "--shrink-runs": (Mode.PLANTED,),
    "--seed": (Mode.GENERATED,),
    "--module": (Mode.GENERATED,),
    "--batch": (Mode.GENERATED,),
    "--results": (Mode.GENERATED,),
}
"""The options that not every mode has. All others every mode has."""


def mode_of(given: Collection[str]) -> Mode:
    """Return the mode that the given options choose; raises ``UsageError`` for an option that the mode lacks."""
    chosen = [mode for mode in (Mode.GENERATED, Mode.AGAINST_BLIND) if mode.value in given]
    if len(chosen) > 1:
        raise UsageError(
            "--generated and --against-blind exclude each other: only planted bugs are searched in both ways"
        )
    mode = chosen[0] if chosen else Mode.PLANTED
    for option, modes in MODES_OF.items():
        if option in given and mode not in modes:
            belongs = " or ".join(each.value for each in modes)
            got = "it without --generated" if mode is Mode.PLANTED else f"it with {mode.value}"
            raise UsageError(f"{option}: expected it only with {belongs}, got {got}")
    return mode

"""The last member of an ISR is taken out of it when its broker dies.

Then nobody may be elected cleanly any more, whoever comes back (KAFKA-708, mended in 0.8.0).

Must be caught by: leader-from-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _the_last_one_too(correct: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    def remove_from_isr(current: Any, replica: int) -> Any:
        isr = tuple(member for member in current.isr if member != replica)
        return replace(correct(current, replica), isr=isr)

    return remove_from_isr


MUTANT = Mutant(
    name="isr-emptied",
    property="leader-from-isr",
    summary="the last member of an ISR is removed when it dies, too (KAFKA-708)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.election",
            "remove_from_isr",
            _the_last_one_too,
            is_comparable=True,
        ),
    ),
)

"""An election leaves the leader epoch as it was.

The leader epoch is what tells a leader from its predecessor; without a new one replicas cannot tell which of
two leaders is the present one, nor where their logs part (KIP-101). The very first election of an existing
partition shows it.

Must be caught by: leader-epoch-grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _same_epoch(correct: Callable[..., Any]) -> Callable[..., Any]:
    def new_leader_and_isr(current: Any, *arguments: Any, **options: Any) -> Any:
        elected = correct(current, *arguments, **options)
        return replace(elected, leader_epoch=current.leader_epoch)

    return new_leader_and_isr


MUTANT = Mutant(
    name="leader-epoch-not-raised",
    property="leader-epoch-grows",
    summary="an election writes the new leader with the old leader epoch",
    replacements=(
        Replacement(
            "nemesis.reference.controller.election",
            "new_leader_and_isr",
            _same_epoch,
            is_comparable=True,
        ),
    ),
)

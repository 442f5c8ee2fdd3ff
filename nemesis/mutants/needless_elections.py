"""An election of the preferred leader is held also where the preferred replica leads.

Each one costs the leader its epoch: followers truncate and fetch again, producers wait.

Must be caught by: elections-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _always(_correct: Any) -> Callable[..., bool]:
    return lambda *_arguments: True


MUTANT = Mutant(
    name="needless-elections",
    property="elections-answered",
    summary="the preferred replica is elected although it leads already",
    replacements=(
        Replacement(
            "nemesis.reference.controller.replica_leader_elections",
            "ReplicaLeaderElections._needs_election",
            _always,
            is_comparable=True,
        ),
    ),
    scenario="reassignment",
)

"""A broker takes metadata in the leader epoch that it knows for old, so a change of the ISR alone never reaches it.

It compares leader epochs where partition epochs count, too (KIP-497), and answers NONE. Clients and administrators that
ask this broker see an ISR of the past until the next election; a follower that has caught up stays missing in it.

Must be caught by: control-requests-applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _by_leader_epoch_alone(correct: Any) -> Callable[[Any, Any], bool]:
    def is_older(state: Any, known: Any) -> bool:
        is_one_epoch = state.topic_id == known.topic_id and state.leader_epoch == known.leader_epoch
        return is_one_epoch or bool(correct(state, known))

    return is_older


MUTANT = Mutant(
    name="metadata-isr-change-ignored",
    property="control-requests-applied",
    summary="a broker answers NONE to UpdateMetadata and leaves out what changes the ISR alone",
    replacements=(
        Replacement(
            "nemesis.reference.server.metadata_cache",
            "is_older",
            _by_leader_epoch_alone,
            is_comparable=True,
        ),
    ),
)

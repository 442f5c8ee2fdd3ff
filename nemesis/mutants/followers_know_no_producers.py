"""A broker remembers the producers of what it appended as leader, and of nothing else.

What followers append teaches them nothing, so whoever is elected knows no producer. It then accepts any sequence number
(KIP-360), also of what the leader before it had appended and could not confirm: the producer sends that again, and it
stands in the log twice. Kafka has every replica learn from the batches themselves since idempotence exists (KIP-98).

Must be caught by: duplicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _learn_nothing(_correct: Any) -> Callable[[Any, Any], dict[int, Any]]:
    def replicated(_self: Any, _headers: Any) -> dict[int, Any]:
        return {}

    return replicated


MUTANT = Mutant(
    name="followers-know-no-producers",
    property="duplicate",
    summary="only leaders remember producers, so what is sent again after an election is appended again",
    replacements=(
        Replacement(
            "nemesis.reference.log.producer_state_manager",
            "ProducerStateManager.replicated",
            _learn_nothing,
            is_comparable=True,
        ),
    ),
    scenario="idempotent-producers",
)

"""A broker that starts takes the newest snapshot of a log's producers for an empty one.

It reads the batches behind the snapshot, as it should, and forgets the producers of all before. After a clean stop that
is everything: once it leads again, what is sent again is appended again. Trusting a snapshot that does not hold what
the log held is how several of Kafka's own bugs lost producers (KAFKA-7190 made brokers accept unknown ones in return).

Must be caught by: duplicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _empty(_correct: Any) -> Callable[[Any], list[Any]]:
    def decode_snapshot(_data: Any) -> list[Any]:
        return []

    return decode_snapshot


MUTANT = Mutant(
    name="producer-snapshot-ignored",
    property="duplicate",
    summary="a broker that starts forgets the producers in its snapshots, and appends again what is sent again",
    replacements=(
        Replacement(
            "nemesis.reference.log.producer_state_manager",
            "decode_snapshot",
            _empty,
            is_comparable=True,
        ),
    ),
    scenario="idempotent-producers",
)

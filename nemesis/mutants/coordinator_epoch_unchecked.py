"""A leader does not compare the coordinator epoch of a marker with the one that it knows.

A marker of a deposed coordinator that arrives late ends the transaction that the producer has open by then. In
KAFKA-9144 a leader compared as it should, but had forgotten the epoch with the producer, too early. Kafka up to 2.3;
fixed in 2.3.2 and 2.4.1.

Must be caught by: marker-epoch-grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _unchecked(correct: Callable[..., None]) -> Callable[..., None]:
    def check_marker(entry: Any, header: Any, marker: Any) -> None:
        correct(entry._replace(coordinator_epoch=-1), header, marker)

    return check_marker


MUTANT = Mutant(
    name="coordinator-epoch-unchecked",
    property="marker-epoch-grows",
    summary="a leader takes markers of deposed transaction coordinators (like KAFKA-9144)",
    replacements=(
        Replacement("nemesis.reference.log.producer_append_info", "check_marker", _unchecked),
    ),
    scenario="transactions",
)
"""The bug."""

"""What the machine may have added to a delay."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import harness
from nemesis.checkers.liveness.unexplained import excuse


@pytest.mark.parametrize(
    ("load_ms", "over_ms", "is_excused"),
    [(0, 0, False), (1, 0, True), (1, 1, True), (1, 2, False), (0, 1, False)],
)
def test_a_load_explains_at_most_as_much_delay(
    load_ms: int, over_ms: int, is_excused: bool
) -> None:
    events = [
        harness(10, "harness-lag", duration_ms=0),
        harness(10, "machine-load", duration_ms=load_ms),
    ]
    assert (excuse(list(enumerate(events)), 0, 9, over_ms) is not None) is is_excused

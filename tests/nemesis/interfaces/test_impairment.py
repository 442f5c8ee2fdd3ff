"""Several causes on one link, and counters."""

from __future__ import annotations

import pytest

from nemesis.interfaces.impairment import Impairment, PacketCounters


def test_independent_causes_add_up() -> None:
    impairment = Impairment(loss=0.5, delay_ms=10, jitter_ms=5, reordering=0.1, hold_ms=20)
    other = Impairment(loss=0.5, delay_ms=30, duplication=0.2, reordering=0.1, hold_ms=50)
    both = Impairment.of([impairment, other])
    assert (both.delay_ms, both.jitter_ms, both.hold_ms) == (40, 5, 50)
    assert both.loss == pytest.approx(0.75)
    assert both.reordering == pytest.approx(0.19)
    assert both.duplication == pytest.approx(0.2)


def test_one_cause_alone_is_itself_and_none_is_nothing() -> None:
    assert Impairment.of([Impairment(delay_ms=10, jitter_ms=3)]) == Impairment(
        delay_ms=10, jitter_ms=3
    )
    assert Impairment.of([]) == Impairment()


def test_counters_are_added_and_compared_field_by_field() -> None:
    first, second = PacketCounters(10, 1, 2, 3, 4), PacketCounters(5, 1, 1, 1, 1)
    assert PacketCounters.of([first, second]) == PacketCounters(15, 2, 3, 4, 5)
    assert first.since(second) == PacketCounters(5, 0, 1, 2, 3)
    assert PacketCounters.of([]) == PacketCounters()

from __future__ import annotations

from dataclasses import dataclass

from nemesis.simulation.clock import SimulatedWallClock

EPOCH_MS = 1_700_000_000_000


@dataclass
class Time:
    now_s: float = 0.0

    def time(self) -> float:
        return self.now_s


def test_a_clock_tells_true_time_until_something_is_done_to_it() -> None:
    time = Time()
    clock = SimulatedWallClock(time, EPOCH_MS)
    time.now_s = 1.5
    assert (clock(), clock.offset_ms) == (EPOCH_MS + 1500, 0)


def test_a_step_is_kept() -> None:
    time = Time()
    clock = SimulatedWallClock(time, EPOCH_MS)
    time.now_s = 2.0
    clock.skew(-60_000)
    assert clock() == EPOCH_MS + 2000 - 60_000
    time.now_s = 3.0
    assert (clock(), clock.offset_ms) == (EPOCH_MS + 3000 - 60_000, -60_000)


def test_a_drift_adds_up_and_stays_when_it_ends() -> None:
    time = Time()
    clock = SimulatedWallClock(time, EPOCH_MS)
    clock.skew(100)
    clock.drift(0.1)
    assert clock() == EPOCH_MS + 100  # a change of rate moves nothing by itself
    time.now_s = 10.0
    assert clock.offset_ms == 100 + 1000
    clock.drift(0.0)
    time.now_s = 20.0
    assert clock() == EPOCH_MS + 20_000 + 1100


def test_a_step_keeps_the_rate() -> None:
    time = Time()
    clock = SimulatedWallClock(time, EPOCH_MS)
    clock.drift(-0.5)
    time.now_s = 4.0
    assert clock.offset_ms == -2000
    clock.skew(0)
    time.now_s = 6.0
    assert (clock.offset_ms, clock.rate) == (-1000, -0.5)


def test_no_clock_is_before_1970() -> None:
    clock = SimulatedWallClock(Time(), 5)
    clock.skew(-6)
    assert clock() == 0

"""This machine's clocks."""

from __future__ import annotations

import time


def monotonic_ns() -> int:
    """CLOCK_MONOTONIC in nanoseconds: one clock for all processes of a machine, and the time of histories."""
    return time.monotonic_ns()


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000

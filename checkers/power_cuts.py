"""When a broker's machine lost its power, and with it what the broker had written and not synced.

Kafka does not sync what it acknowledges, so a replica may come back from a power cut with less than a leader counted
on. That is excused for what was promised before the cut, and only for the broker that was struck.
"""

from __future__ import annotations

from typing import Final

from checkers.segment import Segment
from history.events import Kind

POWER_CUT: Final = "power-cut"
"""The ``fault`` of its ``fault-applied`` event, whose ``targets`` are nodes ``broker-N``."""
NEVER: Final = -1

PowerCuts = dict[int, tuple[int, ...]]
"""The times of the power cuts of each broker, in order."""


def power_cuts(segment: Segment) -> PowerCuts:
    """Return those of a stretch; needs the columns ``fault`` and ``targets``."""
    found: PowerCuts = {}
    applied = segment.where(segment.is_kind(Kind.FAULT_APPLIED))
    for _, event in applied.where(applied.is_word("fault", {POWER_CUT})).events("targets"):
        for node in event.targets or ():
            number = node.removeprefix("broker-")
            if number.isdecimal():
                found[int(number)] = (*found.get(int(number), ()), event.time)
    return found


def join_power_cuts(a: PowerCuts, b: PowerCuts) -> PowerCuts:
    """Return those of two neighbouring stretches, ``a`` before ``b``."""
    return a | {broker: a.get(broker, ()) + times for broker, times in b.items()}


def last_before(cuts: PowerCuts, broker: int, time: int) -> int:
    """Return when the broker last lost its power before that time; ``NEVER`` if it did not."""
    return max((cut for cut in cuts.get(broker, ()) if cut <= time), default=NEVER)

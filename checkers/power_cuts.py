"""When a broker's machine lost its power, and with it what the broker had written and not synced.

Kafka does not sync what it acknowledges, so a replica may come back from a power cut with less than a leader counted
on; and so it may when the end of a log that was not synced is damaged (``corrupt-tail``). That is excused for what was
promised before the broker's next life, and only for the broker that was struck. The moment of the cut itself would be
too early: a Fetch request that was under way still moves its leader's high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind

LOSING: Final = frozenset({"power-cut", "corrupt-tail"})
"""The ``fault`` of the ``fault-applied`` events after which a broker's disk has lost something; their ``targets`` are
nodes ``broker-N``."""
NEVER: Final = -1

Times = dict[int, tuple[int, ...]]
"""By broker, in order."""


@dataclass(frozen=True, slots=True)
class PowerCuts:
    """When brokers lost their power, and when they started."""

    cuts: Times = field(default_factory=dict)
    starts: Times = field(default_factory=dict)

    def freed_at(self, broker: int, time: int) -> int:
        """Return from when on a broker was bound again, as things stood at that time; ``NEVER`` if it always was."""
        cut = max((cut for cut in self.cuts.get(broker, ()) if cut <= time), default=NEVER)
        if cut == NEVER:
            return NEVER
        return min(
            (start for start in self.starts.get(broker, ()) if cut < start <= time), default=time
        )

    def struck_before(self, time: int) -> bool:
        """Return whether any broker had lost its power by then."""
        return any(cut <= time for times in self.cuts.values() for cut in times)


def power_cuts(segment: Segment) -> PowerCuts:
    """Return those of a segment; needs the columns ``fault``, ``targets`` and ``node``."""
    applied = segment.only({Kind.FAULT_APPLIED})
    struck = [
        event for _, event in applied.where(applied.is_word("fault", LOSING)).events("targets")
    ]
    started = segment.only({Kind.BROKER_STARTED})
    starts = [
        (event.node, event.time) for _, event in started.events("node") if event.node is not None
    ]
    return PowerCuts(_by_broker(_struck(struck)), _by_broker(starts))


def join_power_cuts(a: PowerCuts, b: PowerCuts) -> PowerCuts:
    """Return those of two neighbouring segments, ``a`` before ``b``."""
    return PowerCuts(_join(a.cuts, b.cuts), _join(a.starts, b.starts))


def _struck(events: list[Event]) -> Iterator[tuple[int, int]]:
    for event in events:
        for node in event.targets or ():
            number = node.removeprefix("broker-")
            if number.isdecimal():
                yield int(number), event.time


def _by_broker(pairs: Iterable[tuple[int, int]]) -> Times:
    times: Times = {}
    for broker, time in pairs:
        times[broker] = (*times.get(broker, ()), time)
    return times


def _join(a: Times, b: Times) -> Times:
    return a | {broker: a.get(broker, ()) + times for broker, times in b.items()}

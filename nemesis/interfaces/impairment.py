"""What a bad network does to the packets of a link, and what it was seen to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import prod
from typing import Self


@dataclass(frozen=True, slots=True)
class Impairment:
    """Ratios are parts of 1; without arguments nothing is wrong.

    The order of packets stays, whatever the delay and its jitter; those chosen for ``reordering`` are kept back for
    ``hold_ms`` more, and overtaken.
    """

    loss: float = 0.0
    delay_ms: int = 0
    jitter_ms: int = 0
    duplication: float = 0.0
    reordering: float = 0.0
    hold_ms: int = 0

    @classmethod
    def of(cls, causes: Iterable[Self]) -> Impairment:
        """Return what several independent causes do together."""
        causes = list(causes)
        return Impairment(
            loss=_any_of(cause.loss for cause in causes),
            delay_ms=sum(cause.delay_ms for cause in causes),
            jitter_ms=sum(cause.jitter_ms for cause in causes),
            duplication=_any_of(cause.duplication for cause in causes),
            reordering=_any_of(cause.reordering for cause in causes),
            hold_ms=max((cause.hold_ms for cause in causes), default=0),
        )


@dataclass(frozen=True, slots=True)
class PacketCounters:
    """What happened to the packets of links since the start. A packet is what the kernel handles as one."""

    forwarded: int = 0
    lost: int = 0
    delayed: int = 0
    duplicated: int = 0
    reordered: int = 0

    @classmethod
    def of(cls, counters: Iterable[Self]) -> PacketCounters:
        """Return the sum."""
        counters = list(counters)
        return PacketCounters(*(sum(getattr(c, f.name) for c in counters) for f in fields(cls)))

    def since(self, before: PacketCounters) -> PacketCounters:
        """Return what has happened since."""
        return PacketCounters(
            *(getattr(self, f.name) - getattr(before, f.name) for f in fields(self))
        )


def _any_of(chances: Iterable[float]) -> float:
    """Return the chance of at least one of independent events."""
    return 1.0 - prod(1.0 - chance for chance in chances)

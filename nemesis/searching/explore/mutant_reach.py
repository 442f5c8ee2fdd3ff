"""What a planted bug did in many seeds, in numbers and words: not reached, reached, acted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from nemesis.mutants.reach import ReachCounts


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How often something happened."""

    seeds: int
    """In how many seeds it happened at least once."""
    times: int
    """In all seeds together."""


@dataclass(frozen=True, slots=True)
class ReachSummary:
    """The counts of all seeds that came to their end."""

    seeds: int
    reached: Occurrences | None
    """None: it was not counted."""
    acted: Occurrences | None
    """None: it was not counted."""

    @property
    def is_never_reached(self) -> bool:
        """Whether the replaced code is known to have run in no seed."""
        return self.seeds > 0 and self.reached is not None and not self.reached.times

    def __str__(self) -> str:
        """Return the counts in words."""
        if self.reached is None:
            return "whether it was reached is not counted"
        if not self.reached.times:
            return f"not reached in {self.seeds} seeds"
        reached = (
            f"reached {self.reached.times:,} times in {self.reached.seeds} of {self.seeds} seeds"
        )
        if self.acted is None:
            return f"{reached}; whether it acted is not counted"
        if not self.acted.times:
            return f"{reached}; it never acted"
        return f"{reached}; acted {self.acted.times:,} times in {self.acted.seeds}"


def summed(counts: Collection[ReachCounts]) -> ReachSummary:
    """Return the sum over the seeds of one bug."""
    return ReachSummary(
        seeds=len(counts),
        reached=_occurrences(count.reached for count in counts),
        acted=_occurrences(count.acted for count in counts),
    )


def _occurrences(counts: Iterable[int | None]) -> Occurrences | None:
    listed = list(counts)
    known = [count for count in listed if count is not None]
    if not listed or len(known) < len(listed):
        return None
    return Occurrences(seeds=sum(count > 0 for count in known), times=sum(known))

"""How often runs reached something: counts of one run or of many, added up and shown."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final

import msgspec


class Reach(msgspec.Struct, frozen=True, array_like=True):
    """How often something happened, and in how many runs."""

    events: int = 0
    runs: int = 0


NEVER: Final = Reach()


class Coverage(msgspec.Struct, frozen=True):
    """What some runs reached. Plain data: can be sent between processes, and is JSON as it stands."""

    runs: int = 0
    reached: dict[str, dict[str, Reach]] = {}
    """Group → what → how often; zero for what was expected and never happened."""

    def combine(self, other: Coverage) -> Coverage:
        """Return what the runs of both reached."""
        groups: dict[str, dict[str, Reach]] = {}
        for group in dict.fromkeys((*self.reached, *other.reached)):
            ours, others = self.reached.get(group, {}), other.reached.get(group, {})
            groups[group] = {
                name: _sum(ours.get(name, NEVER), others.get(name, NEVER))
                for name in dict.fromkeys((*ours, *others))
            }
        return Coverage(self.runs + other.runs, groups)

    def never(self) -> dict[str, list[str]]:
        """Return what was expected and did not happen in any run, by group; groups without any are left out."""
        missed = {
            group: [label for label, reach in counts.items() if not reach.events]
            for group, counts in self.reached.items()
        }
        return {group: names for group, names in missed.items() if names}

    def lines(self) -> Iterator[str]:
        """Yield all of it for people: a line for each group, the parts of a total in brackets behind it."""
        yield f"(how often, and in how many of {self.in_runs})"
        for group, counts in self.reached.items():
            reached = {label: reach for label, reach in counts.items() if reach.events}
            if reached:
                yield f"{group}: {', '.join(_with_parts(reached))}"

    def table(self) -> Iterator[str]:
        """Yield a short line for each group: how many of its kinds were reached, and how many events that were."""
        width = max(map(len, self.reached), default=0)
        for group, counts in self.reached.items():
            totals = [reach for label, reach in counts.items() if _total_of(label, counts) is None]
            kinds = sum(reach.events > 0 for reach in totals)
            events = sum(reach.events for reach in totals)
            if totals:
                yield f"{group:<{width}}  {kinds:>2} of {len(totals):>2} kinds  {events:>11,} events"

    def missed(self) -> Iterator[str]:
        """Yield a line for each group of which something was never reached."""
        for group, names in self.never().items():
            yield f"NEVER in {self.in_runs}: {group}: {', '.join(names)}"

    @property
    def in_runs(self) -> str:
        return "1 run" if self.runs == 1 else f"{self.runs:,} runs"


def _with_parts(reached: Mapping[str, Reach]) -> Iterator[str]:
    """Yield each total with its parts, which add up to it at most, behind it."""
    for label, reach in reached.items():
        if _total_of(label, reached) is not None:
            continue
        parts = ", ".join(
            f"{part.removeprefix(label).strip()} {of.events} ({of.runs})"
            for part, of in reached.items()
            if _total_of(part, reached) == label
        )
        yield f"{label} {reach.events} ({reach.runs})" + (f" [{parts}]" if parts else "")


def _total_of(label: str, names: Container[str]) -> str | None:
    """Return the shortest name of which this one is a part: ``send fail`` of ``send fail NOT_LEADER``."""
    ends = (index for index, letter in enumerate(label) if letter == " ")
    return next((label[:end] for end in ends if label[:end] in names), None)


def _sum(a: Reach, b: Reach) -> Reach:
    return Reach(a.events + b.events, a.runs + b.runs)

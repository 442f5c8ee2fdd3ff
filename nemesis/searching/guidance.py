"""Guided against blind: what a planted bug costs to find with each way to explore.

For each bug both ways start several times. A start has seeds of its own, the same for both ways, and ends when the
property named for the bug breaks or all seeds were run. A guided start begins with an empty corpus, so this measures
one night without what earlier nights left. The cost is simulated time; runs until found are stated too.

A start that does not find the bug costs at least what it ran: its number is a lower bound, and so is a median that
rests on it. With few starts the medians say little: the number of starts stands beside them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_high
from typing import Any

from nemesis.mutants import Mutant
from nemesis.mutants.chosen import ChosenMutant
from nemesis.searching.explore.corpus import Corpus
from nemesis.searching.explore.exploration import Exploration
from nemesis.searching.explore.guide import Guide
from nemesis.searching.explore.tally import Tally
from nemesis.searching.page_parts import GUIDED


@dataclass(frozen=True, slots=True)
class Start:
    """One search for one bug."""

    first_seed: int
    runs: int
    """Until the bug was found, or all."""
    simulated_s: float
    is_found: bool

    @property
    def in_words(self) -> str:
        return str(self.runs) if self.is_found else f">{self.runs}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """All starts for one bug; the two ways have the same first seeds."""

    mutant: Mutant
    blind: tuple[Start, ...]
    guided: tuple[Start, ...]

    @property
    def ratio(self) -> str:
        """Guided divided by blind simulated time, of the medians, with ≤ or ≥ where one is a lower bound."""
        (blind_s, is_blind_exact), (guided_s, is_guided_exact) = map(
            _median, (self.blind, self.guided)
        )
        if not blind_s or not (is_blind_exact or is_guided_exact):
            return "unknown"
        bound = "" if is_blind_exact and is_guided_exact else "≥ " if is_blind_exact else "≤ "
        return f"{bound}{guided_s / blind_s:.1f}"


def compare(
    mutant: Mutant,
    exploration: Exploration,
    starts: int,
    *,
    show: Callable[[Tally], None] = lambda _tally: None,
) -> Comparison:
    """Search the bug in both ways; blocks. Start k has the k-th range of as many seeds as the exploration has.

    Raises ``KeyboardInterrupt`` when interrupted.
    """
    searches: dict[bool, list[Start]] = {False: [], True: []}
    for number in range(starts):
        first_seed = exploration.first_seed + number * exploration.seeds
        planted = replace(
            exploration,
            first_seed=first_seed,
            mutant=ChosenMutant(mutant.name),
            checkers=(mutant.property,),
        )
        for is_guided, collected in searches.items():
            collected.append(_search(mutant, planted, show, is_guided=is_guided))
    return Comparison(mutant, tuple(searches[False]), tuple(searches[True]))


def _search(
    mutant: Mutant, exploration: Exploration, show: Callable[[Tally], None], *, is_guided: bool
) -> Start:
    with tempfile.TemporaryDirectory(prefix="nemesis-corpus-") as folder:
        guide = Guide(Corpus.read(Path(folder), exploration.scenario)) if is_guided else None
        tally = replace(exploration, guide=guide).run(
            show, is_enough=lambda so_far: mutant.property in so_far.properties_found
        )
    if tally.is_interrupted:
        raise KeyboardInterrupt
    return Start(
        first_seed=exploration.first_seed,
        runs=tally.over,
        simulated_s=tally.virtual_s,
        is_found=mutant.property in tally.properties_found,
    )


def _median(starts: Sequence[Start]) -> tuple[float, bool]:
    """Return the median of the simulated seconds, and whether the start that has it found the bug.

    Starts that did not find the bug rank behind those that did: they would have cost more.
    """
    is_missed, simulated_s = median_high(
        (not start.is_found, start.simulated_s) for start in starts
    )
    return simulated_s, not is_missed


def rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return everything as plain data."""
    return [
        {
            "mutant": comparison.mutant.name,
            "property": comparison.mutant.property,
            "scenario": comparison.mutant.scenario,
            "ratio": comparison.ratio,
            **{
                way: [
                    {
                        "first_seed": start.first_seed,
                        "runs": start.runs,
                        "simulated_s": round(start.simulated_s, 3),
                        "found": start.is_found,
                    }
                    for start in starts
                ]
                for way, starts in (("blind", comparison.blind), ("guided", comparison.guided))
            },
        }
        for comparison in comparisons
    ]


def part(comparisons: Sequence[Comparison], *, command: str) -> str:
    """Return the part of ``docs/scoreboard.md``."""
    return GUIDED.text(
        [
            "## Guided against blind",
            "",
            f"Written by `{command}`. Each planted bug is searched for in both ways, from the same first seeds, until",
            "the property named for it breaks; a guided start begins with an empty corpus. `>N`: not found in N runs.",
            "A median with ≥ is a lower bound. Times are medians in simulated seconds.",
            "",
            "| bug | scenario | starts | runs, blind | runs, guided | time, blind | time, guided | guided ÷ blind |",
            "|---|---|---|---|---|---|---|---|",
            *map(_row, comparisons),
        ]
    )


def in_words(comparison: Comparison) -> str:
    """Return the comparison as one line for people."""
    blind, guided = (_listed(starts) for starts in (comparison.blind, comparison.guided))
    ratio = f"simulated time guided ÷ blind {comparison.ratio}"
    return f"{comparison.mutant.name}: runs blind {blind}; guided {guided}; {ratio}"


def _row(comparison: Comparison) -> str:
    cells = [
        f"`{comparison.mutant.name}`",
        comparison.mutant.scenario,
        str(len(comparison.blind)),
        *(_listed(starts) for starts in (comparison.blind, comparison.guided)),
        *_medians(comparison),
        comparison.ratio,
    ]
    return f"| {' | '.join(cells)} |"


def _listed(starts: Sequence[Start]) -> str:
    return ", ".join(start.in_words for start in starts)


def _medians(comparison: Comparison) -> Iterator[str]:
    for starts in (comparison.blind, comparison.guided):
        simulated_s, is_exact = _median(starts)
        yield f"{'' if is_exact else '≥ '}{simulated_s:.0f}"

"""The scoreboard: every planted bug, how many seeds it takes to catch it, and how small its counterexample gets.

For each bug seeds are explored until the property named for it breaks; then the run of the first such seed is shrunk.
The unmodified reference is explored with all seeds, and must be valid: a harness that convicts the correct code catches
nothing, and seeds in doubt acquit nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from nemesis.checkers import CHECKERS
from nemesis.checkers.framework.model import Verdict
from nemesis.history.run_directory import RunDirectory
from nemesis.mutants import Mutant
from nemesis.mutants.chosen import ChosenMutant
from nemesis.searching.explore.exploration import Exploration
from nemesis.searching.explore.mutant_reach import ReachSummary, summed
from nemesis.searching.explore.tally import Tally
from nemesis.searching.shrink import Size

COLUMNS: Final = (
    "bug", "property named for it", "caught by", "scenario", "seeds to detect", "reached", "acted", "faults",
    "operations", "story",
)  # fmt: skip
BROKEN_BY_NO_BUG: Final = frozenset(
    {
        *("fault-effect", "hw-sampled", "liveness"),
        *(name for name, known in CHECKERS.items() if known.is_of_quorum),
    }
)
"""Of the harness itself, only measured, not judged where brokers trace, or of a KRaft quorum: no planted bug of a
simulated run can break these. An end-to-end test has a bug for ``hw-sampled``."""


@dataclass(frozen=True, slots=True)
class Score:
    """One row."""

    mutant: Mutant | None
    """None: the unmodified reference."""
    seeds: int
    """How many were run."""
    caught_by: tuple[str, ...]
    """The properties that broke, the named one first."""
    seeds_to_detect: int | None
    """Of the property named for the bug; None: it was not caught."""
    first_seed: int | None
    simulated_s: float
    crashed: int
    run: str | None
    """The run of the first seed that shows it, as it was before it was shrunk."""
    size: Size | None
    """How much of that run is left after shrinking."""
    verdict: Verdict
    """Of all the seeds together."""
    doubts: tuple[str, ...] = ()
    """Why that is not ``valid``, findings aside."""
    scenario: str = ""
    """Where it was searched."""
    reach: ReachSummary | None = None
    """What the bug did in all the seeds; None: the unmodified reference."""
    mutant_file: str | None = None
    """The path of the file that the bug is from; None: it is one of ``nemesis.mutants``."""

    @property
    def is_as_it_should_be(self) -> bool:
        """A bug is caught; the reference is valid."""
        if self.mutant is None:
            return self.verdict is Verdict.VALID
        return self.seeds_to_detect is not None

    @property
    def is_wrong(self) -> bool:
        """A bug was missed, or the reference convicted: what is merely in doubt is neither."""
        if self.mutant is None:
            return self.verdict is Verdict.INVALID
        return self.seeds_to_detect is None


Shrinker = Callable[[RunDirectory, str], Size | None]
"""Shrinks a run while this property stays broken, and returns how small it got; None when it did not try."""


def score(
    chosen: ChosenMutant | None,
    exploration: Exploration,
    *,
    shrink: Shrinker,
    show: Callable[[Tally], None] = lambda _tally: None,
) -> tuple[Score, Tally]:
    """Explore with the bug planted, and shrink what shows it; blocks.

    An interrupted exploration is told by its tally; then nothing is shrunk.
    """
    mutant = None if chosen is None else chosen.load()
    planted = replace(exploration, mutant=chosen)
    tally = planted.run(
        show,
        is_enough=lambda so_far: mutant is not None and mutant.property in so_far.properties_found,
    )
    result = None if mutant is None else tally.properties_found.get(mutant.property)
    kept = None if result is None else result.first_run
    size = None
    if mutant is not None and kept is not None and not tally.is_interrupted:
        size = shrink(RunDirectory.open(Path(kept[1])), mutant.property)
    named = [] if result is None or mutant is None else [mutant.property]
    return Score(
        mutant=mutant,
        seeds=tally.over,
        caught_by=(*named, *(name for name in tally.properties_found if name not in named)),
        seeds_to_detect=None if result is None else result.first_seed - planted.first_seed + 1,
        first_seed=None if result is None else result.first_seed,
        simulated_s=tally.virtual_s,
        crashed=len(tally.crashed),
        run=None if kept is None else kept[1],
        size=size,
        verdict=tally.verdict,
        doubts=tuple(tally.why_unknown()),
        scenario=planted.scenario.name,
        reach=None if chosen is None else summed(tally.reaches.values()),
        mutant_file=None if chosen is None or chosen.file is None else chosen.file.path,
    ), tally


def rows(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """Return the rows as plain data."""
    return [
        {
            "mutant": None if score_of_bug.mutant is None else score_of_bug.mutant.name,
            "mutant_file": score_of_bug.mutant_file,
            "property": None if score_of_bug.mutant is None else score_of_bug.mutant.property,
            "scenario": score_of_bug.scenario,
            "caught": score_of_bug.mutant is not None and score_of_bug.seeds_to_detect is not None,
            "caught_by": list(score_of_bug.caught_by),
            "seeds": score_of_bug.seeds,
            "seeds_to_detect": score_of_bug.seeds_to_detect,
            "first_seed": score_of_bug.first_seed,
            "crashed": score_of_bug.crashed,
            "verdict": score_of_bug.verdict.value,
            "doubts": list(score_of_bug.doubts),
            "reach": None if score_of_bug.reach is None else asdict(score_of_bug.reach),
            "simulated_s": round(score_of_bug.simulated_s, 3),
            "run": score_of_bug.run,
            "faults": None if score_of_bug.size is None else score_of_bug.size.faults,
            "operations": None if score_of_bug.size is None else score_of_bug.size.operations,
            "ok": score_of_bug.is_as_it_should_be,
        }
        for score_of_bug in scores
    ]


def in_words(score_of_bug: Score) -> str:
    """Return the row as one line for people."""
    if score_of_bug.mutant is None:
        return _reference(score_of_bug).replace("**", "")
    name, file = score_of_bug.mutant.name, score_of_bug.mutant_file
    name += "" if file is None else f" (from {file})"
    if score_of_bug.seeds_to_detect is None:
        others = f"; {', '.join(score_of_bug.caught_by)} broke" if score_of_bug.caught_by else ""
        why = "" if score_of_bug.reach is None else f"; {_why_missed(score_of_bug.reach)}"
        return f"{name}: NOT CAUGHT by {score_of_bug.mutant.property} in {score_of_bug.seeds} seeds{why}{others}"
    size = score_of_bug.size
    smallest = f", {size.faults} faults and {size.operations} operations" if size else ""
    return f"{name}: caught by {', '.join(score_of_bug.caught_by)} at seed {score_of_bug.first_seed}{smallest}"


def markdown(scores: Iterable[Score], *, command: str) -> str:
    """Return the page ``docs/scoreboard.md``."""
    listed = list(scores)
    lines = [
        "# Scoreboard",
        "",
        f"Written by `{command}`. Each planted bug (`nemesis/mutants/`) is searched for in simulation, seed after",
        "seed, until the property named for it breaks; then the run of that seed is shrunk while the same property",
        "stays broken (–: it was left as it was). Findings of other properties on the way are named too.",
        "*Reached* and *acted*: in how many of these seeds the replaced code ran, and in how many it gave another",
        "result than the correct code (–: not counted).",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *(_row(score_of_bug) for score_of_bug in listed if score_of_bug.mutant is not None),
        "",
    ]
    sizes = [score_of_bug.size for score_of_bug in listed if score_of_bug.size is not None]
    if sizes:
        faults = median(size.faults for size in sizes)
        operations = median(size.operations for size in sizes)
        lines += [
            f"Median of the smallest counterexamples: {faults:g} faults, {operations:g} client operations.",
            "",
        ]
    lines += [_reference(score_of_bug) for score_of_bug in listed if score_of_bug.mutant is None]
    lines += ["", "## What each property has caught", "", "| property | bugs |", "|---|---|"]
    lines += [f"| {name} | {bugs} |" for name, bugs in _by_property(listed).items()]
    return "\n".join(lines).rstrip() + "\n"


def _by_property(scores: Sequence[Score]) -> dict[str, str]:
    """The bugs that each property of the system caught, its own ones first."""
    caught: dict[str, list[str]] = {name: [] for name in CHECKERS if name not in BROKEN_BY_NO_BUG}
    bugs = [
        (score_of_bug, score_of_bug.mutant)
        for score_of_bug in scores
        if score_of_bug.mutant is not None
    ]
    for name, result in caught.items():
        own = [
            bug.name
            for score_of_bug, bug in bugs
            if bug.property == name and name in score_of_bug.caught_by
        ]
        others = [
            bug.name
            for score_of_bug, bug in bugs
            if bug.property != name and name in score_of_bug.caught_by
        ]
        result += own + others
    return {
        name: ", ".join(f"`{bug}`" for bug in result) or "**nobody's**"
        for name, result in caught.items()
    }


def _row(score_of_bug: Score) -> str:
    assert score_of_bug.mutant is not None
    if score_of_bug.seeds_to_detect is None:
        detected = f"**not caught** in {score_of_bug.seeds}"
    else:
        detected = f"{score_of_bug.seeds_to_detect} (seed {score_of_bug.first_seed})"
    faults, operations = (
        ("–", "–")
        if score_of_bug.size is None
        else (score_of_bug.size.faults, score_of_bug.size.operations)
    )
    cells = [
        f"`{score_of_bug.mutant.name}`",
        score_of_bug.mutant.property,
        ", ".join(score_of_bug.caught_by) or "nobody",
        score_of_bug.scenario,
        detected,
        *_reach_cells(score_of_bug.reach),
        str(faults),
        str(operations),
        score_of_bug.mutant.summary,
    ]
    return f"| {' | '.join(cells)} |"


def _why_missed(reach: ReachSummary) -> str:
    """Return whether the bug was never reached, or acted and no property saw it, as far as it is known."""
    if reach.is_never_reached:
        return f"NOT REACHED: the code that it replaces never ran in {reach.seeds} seeds"
    return f"NOT SEEN: {reach}" if reach.acted is not None and reach.acted.times else str(reach)


def _reach_cells(reach: ReachSummary | None) -> tuple[str, str]:
    """Return the cells *reached* and *acted*."""
    if reach is None:
        return "–", "–"
    reached, acted = (
        "–" if occurrences is None else f"{occurrences.seeds} of {reach.seeds}"
        for occurrences in (reach.reached, reach.acted)
    )
    return reached, acted


def _reference(score_of_bug: Score) -> str:
    result = (
        f"**findings by {', '.join(score_of_bug.caught_by)}**"
        if score_of_bug.caught_by
        else "no finding"
    )
    doubts = f"; **in doubt**: {'; '.join(score_of_bug.doubts)}" if score_of_bug.doubts else ""
    return (
        f"The unmodified reference, {score_of_bug.seeds} seeds, {score_of_bug.simulated_s:.0f} simulated seconds: "
        f"{result}{doubts}."
    )

"""What an exploration has come to so far: reports in, findings by property and a verdict out.

The verdict of many seeds follows the rules for one run (``nemesis.checkers.framework.model``): a finding makes it
``invalid``; a run that is in doubt makes it ``unknown``, and so does a property that observed nothing in any seed. A
property that observed nothing in *some* seeds is fine: swarm testing leaves faults out, and the other seeds have
seen it. In the same way the seeds together must have carried their faults out: skipped faults make the verdict
``unknown`` only if no fault of their kind struck in any seed, or more than a fifth of at least five did not.

A crashed seed leaves no verdict, neither for itself nor for the others together: it is told, and the exit code says
that the harness failed unless something was found. A run that differs with the real codec always makes it say so: then
the simulator is not to be believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import msgspec

from nemesis.checkers.faults import MAX_SKIPPED_SHARE
from nemesis.checkers.framework.model import Verdict
from nemesis.mutants.reach import ReachCounts
from nemesis.searching.explore.codecs import CodecReport
from nemesis.searching.explore.coverage_counts import Coverage
from nemesis.searching.explore.crashes import Crash
from nemesis.searching.explore.seed import FaultCount, SeedFinding, SeedReport
from nemesis.support.errors import EXIT_CRASH

FEWEST_DUE: Final = 5
"""Below it one skipped fault would be more than ``MAX_SKIPPED_SHARE``, though others of its kind struck."""
RUNS_KEPT: Final = 3
"""Of each broken property, and of those in doubt; a run may be kept for several properties."""


def _is_too_often_skipped(count: FaultCount) -> bool:
    if count.skipped == count.due:
        return True
    return count.due >= FEWEST_DUE and count.skipped > MAX_SKIPPED_SHARE * count.due


def _alone(seed: int) -> str:
    return f"nemesis explore SCENARIO --first-seed {seed} --seeds 1"


@dataclass(slots=True)
class FoundProperty:
    """A broken property and the seeds that show it."""

    seeds: dict[int, SeedFinding] = field(default_factory=dict)
    runs: dict[int, str] = field(default_factory=dict)

    @property
    def first_seed(self) -> int:
        return min(self.seeds)

    @property
    def first(self) -> SeedFinding:
        """The finding of the smallest seed."""
        return self.seeds[self.first_seed]

    @property
    def first_run(self) -> tuple[int, str] | None:
        """The smallest seed whose run is kept, and where."""
        return min(self.runs.items(), default=None)


@dataclass(slots=True)
class Tally:
    """Adds reports up, in any order. ``asked`` is how many seeds were to be run."""

    asked: int
    repeats: Callable[[int], str] = _alone
    """Returns the command that runs one seed alone."""
    done: int = 0
    properties_found: dict[str, FoundProperty] = field(default_factory=dict)
    doubts: dict[int, tuple[str, ...]] = field(default_factory=dict)
    doubtful_runs: dict[int, str] = field(default_factory=dict)
    """Where the first runs in doubt are kept."""
    invalid: list[int] = field(default_factory=list)
    """Seeds whose verdict it is."""
    crashed: dict[int, Crash] = field(default_factory=dict)
    mismatches: dict[int, str] = field(default_factory=dict)
    not_kept: dict[int, str] = field(default_factory=dict)
    codecs_compared: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    observed_by: Counter[str] = field(default_factory=Counter)
    """In how many seeds a property observed something."""
    hashes: dict[int, str] = field(default_factory=dict)
    """Of the trace of each seed: equal in two explorations of the same seeds with the same options."""
    faults: dict[str, FaultCount] = field(default_factory=dict)
    """By kind of fault."""
    reaches: dict[int, ReachCounts] = field(default_factory=dict)
    """What the planted bug did, by seed; empty without a bug."""
    coverage: Coverage = field(default_factory=Coverage)
    events: int = 0
    deviations: int = 0
    virtual_s: float = 0.0
    simulating_s: float = 0.0
    """Real seconds that workers spent, all added up."""
    elapsed_s: float = 0.0
    is_interrupted: bool = False

    def add(self, report: SeedReport) -> None:
        """Add a seed that came to its end."""
        self.done += 1
        self.hashes[report.seed] = report.trace_hash
        for finding in report.findings:
            result = self.properties_found.setdefault(finding.property, FoundProperty())
            result.seeds[report.seed] = finding
            if report.run is not None:
                result.runs[report.seed] = report.run
        if report.verdict is Verdict.INVALID:
            self.invalid.append(report.seed)
        if report.doubts:
            self.doubts[report.seed] = report.doubts
            if report.run is not None and not report.findings:
                self.doubtful_runs[report.seed] = report.run
        if report.not_kept is not None:
            self.not_kept[report.seed] = report.not_kept
        self.checked.update(report.checked)
        self.observed_by.update({name: int(count > 0) for name, count in report.checked.items()})
        for kind, count in report.faults.items():
            self.faults[kind] = self.faults.get(kind, FaultCount(due=0, skipped=0)) + count
        if report.reach is not None:
            self.reaches[report.seed] = report.reach
        self.coverage = self.coverage.combine(report.coverage)
        self.events += report.events
        self.deviations += report.deviations
        self.virtual_s += report.virtual_s
        self.simulating_s += report.real_s

    def add_codecs(self, report: CodecReport) -> None:
        """Add what a seed came to that was run with both codecs."""
        self.codecs_compared += 1
        if report.difference is not None and report.seed not in self.crashed:
            self.mismatches[report.seed] = report.difference

    def add_crash(self, seed: int, crash: Crash) -> None:
        """Add a seed that took its worker down, or was ended. It has nothing that another codec could differ from."""
        self.crashed[seed] = crash
        self.mismatches.pop(seed, None)

    @property
    def over(self) -> int:
        """Seeds that were begun and are over, whatever came of them."""
        return self.done + len(self.crashed)

    @property
    def shows_failure(self) -> bool:
        """Whether a seed broke a property or crashed."""
        return bool(self.properties_found or self.invalid or self.crashed)

    @property
    def satisfied(self) -> frozenset[str]:
        """Broken properties of which enough runs are kept."""
        return frozenset(
            name for name, result in self.properties_found.items() if len(result.runs) >= RUNS_KEPT
        )

    @property
    def wants_doubtful(self) -> bool:
        """Whether a further run in doubt is worth keeping."""
        return len(self.doubtful_runs) < RUNS_KEPT

    @property
    def unseen(self) -> list[str]:
        """Properties that observed nothing in any seed."""
        return [name for name, seeds in self.observed_by.items() if not seeds]

    @property
    def verdict(self) -> Verdict:
        if self.properties_found or self.invalid:
            return Verdict.INVALID
        if self.why_unknown():
            return Verdict.UNKNOWN
        return Verdict.VALID

    def why_unknown(self) -> list[str]:
        """Return why the verdict is not ``valid``, in words, findings aside; nothing when there is no such reason."""
        why = [] if self.done else ["no seed came to its end"]
        for label, seeds in (
            ("crashed", self.crashed),
            ("not the same with the real codec", self.mismatches),
            ("in doubt", self.doubts),
        ):
            if seeds:
                count = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
                why.append(f"{count} {label}, first {min(seeds)}")
        if self.done and self.unseen:
            why.append(f"nothing was observed by {', '.join(self.unseen)}")
        why += [
            f"{count.skipped} of {count.due} faults of kind {kind} were skipped"
            for kind, count in sorted(self.faults.items())
            if _is_too_often_skipped(count)
        ]
        return why

    @property
    def exit_code(self) -> int:
        """0, 1 or 2 as the verdict; 255 when interrupted, when codecs differ, or for crashes without a finding."""
        if (
            self.is_interrupted
            or self.mismatches
            or (self.crashed and not self.properties_found and not self.invalid)
        ):
            return EXIT_CRASH
        return self.verdict.exit_code

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; findings in the order in which their properties were first seen."""
        return {
            "verdict": self.verdict.value,
            "exit_code": self.exit_code,
            "interrupted": self.is_interrupted,
            "seeds": {"asked": self.asked, "done": self.done, "crashed": len(self.crashed)},
            "findings": [
                _finding_as_json(name, result) for name, result in self.properties_found.items()
            ],
            "unknown": [
                {
                    "seed": seed,
                    "reasons": list(reasons),
                    "run": self.doubtful_runs.get(seed),
                    "repeat": self.repeats(seed),
                }
                for seed, reasons in sorted(self.doubts.items())
            ],
            "unseen": self.unseen,
            "crashed": [
                {
                    "seed": seed,
                    "reason": crash.reason,
                    "trace": crash.trace,
                    "output": crash.output,
                    "file": crash.file,
                    "repeat": self.repeats(seed),
                }
                for seed, crash in sorted(self.crashed.items())
            ],
            "not_kept": [
                {"seed": seed, "reason": reason} for seed, reason in sorted(self.not_kept.items())
            ],
            "codec": {
                "compared": self.codecs_compared,
                "mismatches": [
                    {"seed": seed, "difference": difference}
                    for seed, difference in sorted(self.mismatches.items())
                ],
            },
            "properties": {
                name: {"checked": count, "seeds": self.observed_by[name]}
                for name, count in self.checked.items()
            },
            "hashes": {str(seed): self.hashes[seed] for seed in sorted(self.hashes)},
            "mutant_reach": {
                str(seed): asdict(self.reaches[seed]) for seed in sorted(self.reaches)
            },
            "coverage": msgspec.to_builtins(self.coverage),
            "faults": msgspec.to_builtins(self.faults),
            "events": self.events,
            "deviations": self.deviations,
            "simulated_s": round(self.virtual_s, 3),
            "simulating_s": round(self.simulating_s, 3),
            "elapsed_s": round(self.elapsed_s, 3),
        }


def _finding_as_json(name: str, result: FoundProperty) -> dict[str, Any]:
    run = result.first_run
    return {
        "property": name,
        "seeds": sorted(result.seeds),
        "first": msgspec.to_builtins(result.first),
        "runs": {str(seed): run for seed, run in sorted(result.runs.items())},
        "replay": None if run is None else f"nemesis replay {run[1]}",
    }

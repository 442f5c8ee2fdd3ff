"""Which run is next in a guided exploration: a fresh seed, or a variation of a run that reached something new.

The idea is that of coverage-guided fuzzers (AFL, libFuzzer): a run that reached something new is close to more that
is new. A run is a seed and a plan. A quarter of the runs are those of blind exploration: the plan that the seed
draws. The others vary a kept run: one or a few faults of its plan change (``plan_changes``), or its seed does, and
with it load, network and schedule. A plan that changes late repeats its original up to the change, because the seed
decides everything else.

Kept runs are not equally worth varying. The weight of one is the sum over its features of one divided by the number
of runs that reached the feature, divided by how often the run was varied already: rare features attract runs, and no
entry takes them all.

With one worker the runs depend on the first seed and the corpus alone. Several workers end in any order, so what is
known when a run is chosen differs from time to time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from nemesis.faults.plan import Plan
from nemesis.searching.explore.corpus import Corpus, Entry
from nemesis.searching.explore.coverage_counts import Coverage
from nemesis.searching.explore.plan_changes import PlanLimits, change
from nemesis.simulation.randomness import stream

FRESH_SHARE: Final = 0.25
RESEED_SHARE: Final = 0.25
"""Of the changes of a kept run, how many change its seed instead of its plan."""
FURTHER_CHANGE_SHARE: Final = 0.5
"""After each change, the chance of one more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that is to be tried."""

    seed: int
    plan: Plan | None
    """None: the plan that the seed draws."""


class Guide:
    """Chooses runs and learns from them what is worth varying."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._limits = PlanLimits.of(corpus.scenario)
        self._reached_by = Counter(feature for entry in corpus.entries for feature in entry.new)
        """How many runs reached a feature."""
        self._varied: Counter[int] = Counter()
        """How often an entry was varied, by its index."""
        self._resumed = len(corpus.entries)

    def choose(self, number: int) -> Candidate:
        """Return the run with this number, which is the seed of a fresh run."""
        rng = stream(number, "guide")
        if not self.corpus.entries or rng.random() < FRESH_SHARE:
            return Candidate(number, None)
        indexes = range(len(self.corpus.entries))
        [index] = rng.choices(indexes, [self._weight(index) for index in indexes])
        self._varied[index] += 1
        kept = self.corpus.entries[index]
        seed, plan = kept.seed, kept.plan
        while True:
            if rng.random() < RESEED_SHARE:
                seed = number
            else:
                plan = change(rng, plan, self._limits)
            # Two changes may undo each other.
            if rng.random() >= FURTHER_CHANGE_SHARE and (seed, plan) != (kept.seed, kept.plan):
                return Candidate(seed, plan)

    def learn(self, seed: int, plan: Plan, coverage: Coverage) -> None:
        """Keep a finished run if it reached something new."""
        reached = [
            f"{group}: {label}"
            for group, counts in coverage.reached.items()
            for label, reach in counts.items()
            if reach.events
        ]
        new = tuple(feature for feature in reached if not self._reached_by[feature])
        self._reached_by.update(reached)
        if new:
            self.corpus.add(Entry(seed, plan, new))

    def summary(self) -> dict[str, Any]:
        """Return what the corpus has come to, as plain data."""
        return {
            "corpus": str(self.corpus.folder),
            "entries": len(self.corpus.entries),
            "new_entries": len(self.corpus.entries) - self._resumed,
            "features": len(self._reached_by),
        }

    def _weight(self, index: int) -> float:
        rarity = sum(1 / self._reached_by[feature] for feature in self.corpus.entries[index].new)
        return max(rarity, 1e-9) / (1 + self._varied[index])

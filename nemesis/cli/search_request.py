"""From the options of a search over many seeds to the exploration that they ask for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nemesis.cli.console import note
from nemesis.cli.options import require_range, workers
from nemesis.running.preflight import RunOptions, prepare, say_left_out
from nemesis.scenarios import scenario
from nemesis.scenarios.broker_properties import OPTION
from nemesis.searching.explore.corpus import Corpus
from nemesis.searching.explore.exploration import Exploration
from nemesis.searching.explore.guide import Guide
from nemesis.support.errors import UsageError
from nemesis.support.runtime_names import SIMULATION

MAX_SEEDS: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The command line, unchecked; None means: as the scenario says."""

    scenario: str
    seeds: int
    first_seed: int
    jobs: int | None
    store: Path
    time_limit_s: float | None = None
    faults: str | None = None
    broker_properties: tuple[str, ...] = ()
    mutant: str | None = None
    checkers: str | None = None
    real_codec_every: int = 0
    is_guided: bool = False
    corpus: Path | None = None


def create_exploration(search: SearchRequest) -> Exploration:
    """Check everything; raises what ``preflight.prepare`` raises. Writes nothing."""
    require_range("--seeds", search.seeds, 1, MAX_SEEDS)
    require_range("--first-seed", search.first_seed, 0, scenario.MAX_SEED - search.seeds)
    require_range("--real-codec-every", search.real_codec_every, 0, MAX_SEEDS)
    if search.is_guided != (search.corpus is not None):
        missing = "--corpus DIR" if search.is_guided else "--guided"
        raise UsageError(f"--guided and --corpus DIR go together: {missing} is missing")
    jobs = workers(search.jobs)
    spec = prepare(
        RunOptions(
            scenario=search.scenario,
            store=search.store,
            runtime=SIMULATION,
            seed=search.first_seed,
            time_limit_s=search.time_limit_s,
            faults=search.faults,
            broker_properties=search.broker_properties,
            mutant=search.mutant,
            checkers=search.checkers,
        )
    )
    say_left_out(spec, note)
    return Exploration(
        scenario=spec.scenario,
        first_seed=search.first_seed,
        seeds=search.seeds,
        jobs=jobs,
        store=search.store.absolute(),
        command_line=("nemesis", *sys.argv[1:]),
        mutant=spec.mutant,
        checkers=None if spec.checkers is None else tuple(spec.checkers),
        options=_repeat_options(search),
        real_codec_every=search.real_codec_every,
        guide=None if search.corpus is None else Guide(Corpus.read(search.corpus, spec.scenario)),
    )


def _repeat_options(search: SearchRequest) -> tuple[str, ...]:
    """Return the options that change the scenario, as they have to be given again."""
    faults, time_limit_s = search.faults, search.time_limit_s
    return (
        *(() if faults is None else ("--faults", faults)),
        *(() if time_limit_s is None else ("--time-limit", f"{time_limit_s:g}")),
        *(word for text in search.broker_properties for word in (OPTION, text)),
    )

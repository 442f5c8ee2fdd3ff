"""``nemesis mutants --generated N``: draws mutants of the reference, runs them, and states the mutation score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nemesis.cli.console import note, out, say_json
from nemesis.cli.options import require_range, workers
from nemesis.cli.search_request import MAX_SEEDS
from nemesis.history.run_directory import write_atomically
from nemesis.mutants.generated.draw import all_mutations, drawn
from nemesis.mutants.generated.mutation import shortened
from nemesis.mutants.generated.sources import DEFAULT_MODULES
from nemesis.scenarios import scenario
from nemesis.searching.generated import page as pages
from nemesis.searching.generated.campaign import Campaign, batch_of, with_time_limit
from nemesis.searching.generated.results import (
    Header,
    MutantRecord,
    ResultFile,
    Status,
    digest_of_code,
)
from nemesis.searching.generated.score import ScoreTable, score_table
from nemesis.searching.generated.survivors import equivalent_mutants
from nemesis.searching.page_parts import GENERATED
from nemesis.support.errors import UsageError
from nemesis.support.interrupts import terminable

DEFAULT_SEEDS: Final = 25
MAX_GENERATED: Final = 1_000_000
SURVIVORS: Final = Path("docs/survivors.md")
_BATCH: Final = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, kw_only=True)
class GeneratedRequest:
    """The command line, unchecked."""

    count: int
    draw_seed: int
    modules: Sequence[str]
    batch: str | None
    results: Path | None
    seeds: int
    first_seed: int
    jobs: int | None
    scenario: str | None
    time_limit_s: float | None
    store: Path
    page: Path | None
    command: str
    as_json: bool


def run_generated(request: GeneratedRequest) -> None:
    """Run what has no result yet, and print the score; raises ``UsageError`` and ``HarnessError``."""
    require_range("--generated", request.count, 1, MAX_GENERATED)
    require_range("--seeds", request.seeds, 1, MAX_SEEDS)
    if request.page is not None and not request.page.is_file():
        raise UsageError(f"--page {request.page}: expected a file, got none")
    part = None if request.batch is None else _batch(request.batch)
    globs = tuple(request.modules) or DEFAULT_MODULES
    mutations = all_mutations(globs)
    judged = equivalent_mutants(SURVIVORS)
    chosen = drawn(mutations, seed=request.draw_seed, count=request.count)
    batch = chosen if part is None else batch_of(chosen, *part)
    note(f"{len(batch)} mutants of {len(mutations)}")
    names = [request.scenario] if request.scenario is not None else scenario.names_for("reference")
    scenarios = {name: with_time_limit(scenario.load(name), request.time_limit_s) for name in names}
    folder = request.store / "generated"
    path = request.results or folder / f"seed-{request.draw_seed}.jsonl"
    campaign = Campaign(
        mutations=batch,
        scenarios=scenarios,
        first_seed=request.first_seed,
        seeds=request.seeds,
        jobs=workers(request.jobs),
        results=ResultFile(path, _header(request, globs, names)),
        baselines=folder / "baselines",
    )
    with terminable():
        records = campaign.run(_show)
    table = score_table(records, judged)
    section = pages.part(table, command=request.command, drawn=len(chosen))
    if request.page is not None:
        text = request.page.read_text(encoding="utf-8")
        write_atomically(request.page, GENERATED.write(text, section).encode())
    if request.as_json:
        say_json({**table.as_json(), "results": str(path), "survivors": _survivors(records)})
    else:
        _print(table, records, path)


def _header(request: GeneratedRequest, globs: tuple[str, ...], names: Sequence[str]) -> Header:
    return Header(
        draw_seed=request.draw_seed,
        modules=globs,
        scenarios=tuple(names),
        seeds=request.seeds,
        first_seed=request.first_seed,
        time_limit_s=request.time_limit_s,
        code=digest_of_code(),
    )


def _batch(text: str) -> tuple[int, int]:
    match = _BATCH.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise UsageError(f"--batch {text}: expected K/N with K from 1 to N, such as 2/10")
    return int(match[1]), int(match[2])


def _show(record: MutantRecord) -> None:
    finders = f" by {', '.join(record.killed_by)}" if record.killed_by else ""
    note(
        f"{record.status.value}{finders}: {record.name}: {shortened(record.original)} → {shortened(record.mutant)}"
    )


def _print(table: ScoreTable, records: Sequence[MutantRecord], path: Path) -> None:
    for row in (*table.by_package, *table.by_operator, table.total):
        score = "no score" if row.score is None else f"{100 * row.score:.0f} %"
        counts = ", ".join(f"{count} {status.value}" for status, count in row.counts.items())
        out.print(f"{row.label}: {score} ({row.drawn} drawn: {counts})")
    for line in pages.survivors(records):
        out.print(line)
    out.print(f"{pages.headline(table.total)} Results: {path}")


def _survivors(records: Sequence[MutantRecord]) -> list[str]:
    return [record.name for record in records if record.status is Status.SURVIVED]

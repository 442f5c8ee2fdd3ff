"""The mutation score as Markdown: a part of ``docs/scoreboard.md``, and the summary of a nightly job.

The stated score is read from the part (``page_parts``): the nightly job compares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nemesis.searching.generated.results import MutantRecord, Status
from nemesis.searching.generated.score import Row, ScoreTable
from nemesis.searching.page_parts import GENERATED
from nemesis.support.errors import UsageError

_STATED: Final = re.compile(r"Mutation score: \*\*(\d+(?:\.\d+)?) %\*\*")
_COLUMNS: Final = (
    "drawn", "reached", "effective", "killed", "survived", "equivalent", "crashed", "hung", "failed", "score (95 %)",
)  # fmt: skip


def part(table: ScoreTable, *, command: str, drawn: int) -> str:
    """Return the part of the scoreboard; ``drawn`` is how many mutants the whole draw has."""
    done = table.total.drawn
    is_partial = f" This is partial: {done} of {drawn} mutants of the draw." if done < drawn else ""
    lines = [
        "## Generated mutants",
        "",
        f"Written by `{command}`.{is_partial}",
        "[The mutation score](mutation-score.md) says what is counted.",
        "",
        f"{headline(table.total)}",
        "",
        *_table("package", table.by_package, table.total),
        "",
        *_table("operator", table.by_operator, table.total),
        "",
        "| property | mutants that it found | that no other property found |",
        "|---|---|---|",
        *(
            f"| {name} | {count} | {table.total.alone[name]} |"
            for name, count in table.total.properties.most_common()
        ),
    ]
    return GENERATED.text(lines)


def headline(total: Row) -> str:
    """Return the score in one sentence, from which ``stated_score`` reads it."""
    if total.score is None:
        return "No mutant had an effect, so a score does not exist."
    low, high = total.interval
    killed = total.counts[Status.KILLED]
    return (
        f"Mutation score: **{100 * total.score:.1f} %** ({killed} of {total.scored} effective mutants; "
        f"95 % interval {100 * low:.0f} to {100 * high:.0f} %)."
    )


def stated_score(page: str) -> float:
    """Return the score that a scoreboard states, between 0 and 1; raises ``UsageError`` when it states none."""
    match = _STATED.search(GENERATED.read(page) or "")
    if match is None:
        raise UsageError(
            "the scoreboard: expected a line 'Mutation score: **N %**' in the part about generated mutants, got none"
        )
    return float(match.group(1)) / 100


def has_fallen(total: Row, stated: float) -> bool:
    """Return whether a score is below the stated one by more than chance: by its 95 % interval."""
    return total.score is not None and total.interval[1] < stated


def survivors(records: Sequence[MutantRecord]) -> list[str]:
    """Return one line for each mutant that survived."""
    return [
        f"* `{record.name}`: {' '.join(record.mutant.split())} — was: {' '.join(record.original.split())}"
        for record in records
        if record.status is Status.SURVIVED
    ]


def _table(label: str, rows: Sequence[Row], total: Row) -> list[str]:
    return [
        f"| {label} | {' | '.join(_COLUMNS)} |",
        f"|---|{'---|' * len(_COLUMNS)}",
        *(_row(row) for row in (*rows, total)),
    ]


def _row(row: Row) -> str:
    low, high = row.interval
    score = (
        "–"
        if row.score is None
        else f"{100 * row.score:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    )
    statuses = (Status.CRASHED, Status.HUNG, Status.FAILED)
    cells = [
        row.label, row.drawn, row.reached, row.effective, row.counts[Status.KILLED],
        row.counts[Status.SURVIVED], row.equivalent, *(row.counts[status] for status in statuses), score,
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"

"""What a check came to, on the terminal or for a machine."""

from __future__ import annotations

from typing import Final

import msgspec
import typer
from rich.text import Text

from nemesis.checkers.foreign import named_model
from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.model import Finding, Outcome, Verdict
from nemesis.cli.console import note, out, say, say_json
from nemesis.cli.outcome_lines import lines, verdict_text
from nemesis.cli.pasted import replay_of, shrink_of
from nemesis.history.run_directory import RunDirectory
from nemesis.support.extras import cure
from nemesis.support.paths import short

SLOW_EVENTS: Final = 1_000_000
"""Of more events the console says that compiled kernels would be faster."""


def say_outcome(
    run_directory: RunDirectory, outcome: Outcome, *, as_json: bool, is_verbose: bool = False
) -> None:
    """Print results and, last, the line that everybody looks for; exits with the verdict's code.

    ``is_verbose``: a line for each property. Otherwise a line for each family of properties, and what is not valid.
    """
    about = run_directory.read_info().foreign
    model = named_model(about.get("workload"), about.get("consistency_model"))
    if anomalies := about.get("anomalies"):
        model = f"freedom from {', '.join(anomalies)}"
    if model and not about.get("has_real_time", True):
        model += " without real time"
    if model and about.get("key_options"):
        model += f" with {', '.join(about['key_options'])}"
    notes = about.get("notes", [])
    if as_json:
        counted, permitted = apart(outcome)
        say_json(
            {
                "verdict": outcome.verdict.value,
                "run": str(run_directory.path),
                "report": str(run_directory.report_file),
                "replay": run_directory.read_info().replay,
                **({"consistency_model": model} if model else {}),
                "outcome": msgspec.to_builtins(counted),
                "permitted": msgspec.to_builtins(permitted),
                "notes": notes,
            }
        )
        raise typer.Exit(outcome.verdict.exit_code)
    if outcome.events > SLOW_EVENTS and not has_compiler():
        note(
            f"{outcome.events:,} events were judged without numba, which takes minutes longer: {cure('kernels')}"
        )
    for line in lines(outcome, is_verbose=is_verbose):
        say(line)
    for sentence in notes:
        say(Text(f"note: {sentence}"))
    report, replay = short(run_directory.report_file), replay_of(run_directory)
    # In one line however long: a terminal that breaks it does so without a new line in what is copied.
    under = f"; model: {model}" if model else ""
    smaller = f"; shrink: {shrink}" if (shrink := shrink_of(run_directory, outcome)) else ""
    out.print(
        verdict_text(outcome).append(
            f"{under}; report: {report}; replay: {replay}{smaller}", "default"
        )
    )
    raise typer.Exit(outcome.verdict.exit_code)


def apart(outcome: Outcome) -> tuple[Outcome, list[Finding]]:
    """Return the outcome without findings that the consistency model permits, and these findings."""
    permitted = [
        finding
        for result in outcome.results
        for finding in result.findings
        if _is_permitted(finding)
    ]
    results = tuple(
        msgspec.structs.replace(
            result,
            findings=tuple(finding for finding in result.findings if not _is_permitted(finding)),
        )
        for result in outcome.results
    )
    return msgspec.structs.replace(outcome, results=results), permitted


def _is_permitted(finding: Finding) -> bool:
    return finding.verdict is Verdict.VALID and not finding.known


def note_kept_results(run_directory: RunDirectory, outcome: Outcome, stored: Outcome) -> None:
    """Report which results a check of few properties left as they were: the exit code does not count them."""
    kept = {result.property for result in stored.results} - {
        result.property for result in outcome.results
    }
    if kept:
        note(
            f"the results of {len(kept)} other properties are kept: with them the verdict in "
            f"{short(run_directory.report_file)} is {stored.verdict.value}"
        )

"""What a check came to, on the terminal or for a machine."""

from __future__ import annotations

import msgspec
import typer

from nemesis.checkers.framework.model import Outcome
from nemesis.cli.console import note, out, say_json
from nemesis.history.run_directory import RunDirectory
from nemesis.reports import wording
from nemesis.reports.liveness import measured
from nemesis.support.paths import short


def say_outcome(run_directory: RunDirectory, outcome: Outcome, *, as_json: bool) -> None:
    """Print results and, last, the line that everybody looks for; exits with the verdict's code."""
    replay = run_directory.read_info().replay
    report_file = short(run_directory.report_file)
    if as_json:
        say_json(
            {
                "verdict": outcome.verdict.value,
                "run": str(run_directory.path),
                "report": str(run_directory.report_file),
                "replay": replay,
                "outcome": msgspec.to_builtins(outcome),
            }
        )
        raise typer.Exit(outcome.verdict.exit_code)
    for problem in outcome.problems:
        out.print(f"problem: {problem}")
    if outcome.not_recorded:
        names = ", ".join(outcome.not_recorded)
        out.print(f"not judged, because the run's version of nemesis recorded too little: {names}")
    for sentence in (
        *wording.not_observed(outcome),
        *wording.in_part(outcome),
        *wording.known(outcome),
    ):
        out.print(sentence)
    for result in outcome.results:
        count = result.finding_count
        findings = f", {count} finding{'s' * (count > 1)}" if count else ""
        extent = ", judged in part" if result.in_part_without else ""
        out.print(
            f"{result.verdict.value:<8} {result.property:<24} {result.checked} {result.unit}{extent}{findings}"
        )
        for nth, finding in enumerate(result.findings[:3]):
            out.print(f"         {finding.key}: {finding.sentence}")
            for number, step in enumerate(finding.steps if nth == 0 else (), start=1):
                out.print(f"           {number}. {step}")
        for line in measured(result):
            out.print(f"         {line}")
    out.print(f"{outcome.verdict.value}{_reach(outcome)}; report: {report_file}; replay: {replay}")
    raise typer.Exit(outcome.verdict.exit_code)


def _reach(outcome: Outcome) -> str:
    """How many properties the verdict leaves out, knows in part or allows; nothing if all were judged as a whole."""
    partial = sum(bool(result.in_part_without) for result in outcome.results)
    counts = (
        (len(outcome.not_observed), "not observed"),
        (partial, "judged in part"),
        (sum(map(wording.is_broken_as_known, outcome.results)), "broken by known behaviour"),
    )
    parts = [f"{count} {how}" for count, how in counts if count]
    return f" ({', '.join(parts)})" if parts else ""


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

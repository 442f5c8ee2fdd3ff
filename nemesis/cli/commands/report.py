"""``nemesis report``: the report of a run once more, from its last check."""

from __future__ import annotations

from nemesis import reports
from nemesis.cli.options import Json, RunPath, Verbose
from nemesis.cli.outcome import say_outcome
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.judge import read_outcome
from nemesis.judging.planted import planted_story


def report(path: RunPath, is_verbose: Verbose = False, as_json: Json = False) -> None:
    """Write the report of a run again from its last check."""
    directory = RunDirectory.open(path)
    outcome = read_outcome(directory)
    reports.write(directory, outcome, story=planted_story(directory.read_info()))
    say_outcome(directory, outcome, as_json=as_json, is_verbose=is_verbose)

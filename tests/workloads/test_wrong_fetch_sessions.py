"""A broker that answers every fetch of a client with an error of fetch sessions: the run has a verdict all the same."""

from __future__ import annotations

from pathlib import Path

from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Kind
from nemesis.testing import simulate_plan

BUG = """
from nemesis.mutants.base import Mutant, Replacement


def no_session(correct):
    def new_context(manager, metadata, *arguments, is_follower, **options):
        if not is_follower:
            metadata = type(metadata)(1, 1)
        return correct(manager, metadata, *arguments, is_follower=is_follower, **options)

    return new_context


MUTANT = Mutant(
    name="no-session",
    property="unseen",
    summary="a broker knows no fetch session of a client",
    replacements=(
        Replacement("nemesis.reference.server.fetch_manager", "FetchManager.new_context", no_session),
    ),
)
"""


def test_final_reads_end_undecided(tmp_path: Path) -> None:
    bug = tmp_path / "bug.py"
    bug.write_text(BUG)
    run = simulate_plan((), max_operations=40, mutant=str(bug))
    reads = [event for event in run.simulated.events if event.kind == Kind.FINAL_READ]
    assert reads
    assert all(event.error not in (None, "NONE") for event in reads)
    refused = {event.error for event in run.simulated.events if event.f == "poll" and event.error}
    assert "FETCH_SESSION_ID_NOT_FOUND" in refused
    assert run.outcome.verdict is not Verdict.VALID

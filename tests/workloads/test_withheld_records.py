"""A leader that hands out no record to a client: the final reads name that, and the run is invalid."""

from __future__ import annotations

from pathlib import Path

from nemesis.history.events import Kind
from nemesis.testing import simulate_plan

BUG = """
from nemesis.mutants.base import Mutant, Replacement


def empty(correct):
    def fetch_records(partition, params, *arguments, **options):
        result = correct(partition, params, *arguments, **options)
        return result if params.is_from_follower else result._replace(records=b"")

    return fetch_records


MUTANT = Mutant(
    name="empty-fetches",
    property="withheld",
    summary="a fetch of a client returns nothing",
    replacements=(Replacement("nemesis.reference.server.record_fetches", "fetch_records", empty),),
)
"""


def test_a_final_read_that_is_given_nothing_says_so(tmp_path: Path) -> None:
    bug = tmp_path / "bug.py"
    bug.write_text(BUG)
    run = simulate_plan((), max_operations=40, mutant=str(bug), checkers=["withheld", "unseen"])
    ends = {
        event.error: event.high_watermark
        for event in run.simulated.events
        if event.kind == Kind.FINAL_READ
    }
    assert ends.keys() <= {"NO_RECORDS", "NONE"}
    assert (ends["NO_RECORDS"] or 0) > 0
    findings = [item for item in run.outcome.broken() if item.property == "withheld"]
    assert findings
    assert "answers without an error within" in findings[0].sentence

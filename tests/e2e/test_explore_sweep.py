"""The long sweeps in simulation: the reference shows nothing, and every planted bug is found and becomes small."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest

from nemesis.mutants import MUTANTS
from nemesis.scenarios import scenario
from tests.e2e.command import nemesis

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(6 * 3600)]

TIMEOUT_S = 5.5 * 3600
MAX_MEDIAN_FAULTS = 4
MAX_MEDIAN_OPERATIONS = 10


@pytest.mark.parametrize("name", scenario.names_for("reference"))
def test_a_thousand_seeds_of_the_reference_show_nothing(name: str, tmp_path: Path) -> None:
    ran = nemesis(tmp_path, "explore", name, "--seeds", "1000", "--json", timeout_s=TIMEOUT_S)
    assert ran.returncode == 0, ran.stdout[:5000] + ran.stderr
    report = json.loads(ran.stdout)
    assert report["seeds"] == {"asked": 1000, "done": 1000, "crashed": 0}
    assert report["codec"] == {"compared": 20, "mismatches": []}


def test_every_planted_bug_is_found_and_becomes_small(tmp_path: Path) -> None:
    page = tmp_path / "scoreboard.md"
    ran = nemesis(tmp_path, "mutants", "--page", str(page), "--json", timeout_s=TIMEOUT_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = {row["mutant"]: row for row in json.loads(ran.stdout)}
    assert set(rows) == {*MUTANTS, None}
    bugs = [row for name, row in rows.items() if name is not None]
    assert median(row["faults"] for row in bugs) <= MAX_MEDIAN_FAULTS
    assert median(row["operations"] for row in bugs) <= MAX_MEDIAN_OPERATIONS
    assert all(f"`{name}`" in page.read_text() for name in MUTANTS)

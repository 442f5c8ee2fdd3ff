"""The tables of ``docs/faults.md`` are the ones that the faults give, and each fault states what they need."""

from __future__ import annotations

import pytest

from nemesis.faults import FAULTS, Fault
from nemesis.faults.availability import kinds_of, runtimes_of
from nemesis.faults.pages import PAGE, fields_table, replaced

LONGEST_CELL_WORDS = 20


def test_the_committed_tables_are_current() -> None:
    """``python -m nemesis.faults.pages`` writes them; read the difference before you commit it."""
    page = PAGE.read_text("utf-8")
    assert replaced(page) == page


def test_a_page_without_a_place_for_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected the lines <!-- generated: faults -->"):
        replaced("# Faults\n")


@pytest.mark.parametrize("kind", FAULTS.values(), ids=list(FAULTS))
def test_a_fault_states_in_short_cells_what_it_does_and_what_proves_it(kind: type[Fault]) -> None:
    for cell in (kind.summary, kind.effect, kind.heal):
        assert cell
        assert not cell.endswith(".")
        assert len(cell.split()) <= LONGEST_CELL_WORDS
    assert kind.needs


def test_a_field_shows_its_range_and_its_default() -> None:
    rows = fields_table().splitlines()
    assert any(row.startswith("| `drift` |") and "| -0.9 to 9 | 0 |" in row for row in rows)
    assert any(
        row.startswith("| `shape` |") and "| required | `partition` |" in row for row in rows
    )
    assert any(row.startswith("| `duration_s` |") and row.endswith("| all |") for row in rows)


def test_a_fault_is_available_where_no_part_is_missing() -> None:
    assert runtimes_of(FAULTS["slow-link"]) == ["docker", "simulation"]
    assert "packet-loss" not in kinds_of("simulation")
    assert set(kinds_of("docker")) == FAULTS.keys() - {
        "corrupt-tail",
        "log-dir-failure",
        "stray-requests",
    }

"""The table fault × runtime in the docs is the one that the code makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import conformance_table


def test_the_committed_table_is_current() -> None:
    is_current = conformance_table.committed() == conformance_table.render()
    if not is_current:
        conformance_table.write()
    assert is_current, f"{conformance_table.DOCS} has been written anew: look at it and commit it"


def test_docs_without_a_place_for_it_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "faults.md"
    docs.write_text("# Faults\n")
    monkeypatch.setattr(conformance_table, "DOCS", docs)
    with pytest.raises(ValueError, match="lacks the line <!-- conformance"):
        conformance_table.write()
    assert docs.read_text() == "# Faults\n"

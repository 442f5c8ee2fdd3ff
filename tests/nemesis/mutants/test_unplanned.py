"""The bugs of ``unplanned`` can still be planted in the present reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.mutants.chosen import choose_mutant

FILES = sorted(Path(__file__).with_name("unplanned").glob("[a-z]*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_bug_can_be_planted(path: Path) -> None:
    chosen = choose_mutant(str(path))
    assert chosen.name == path.stem.replace("_", "-")
    with chosen.load().planted():
        pass


def test_there_are_two_counts_of_twelve() -> None:
    assert len(FILES) == 24

"""The glossary is sorted, has one line per term, and says where each term comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "glossary.md"
MAX_WORDS: Final = 25


def rows() -> list[list[str]]:
    """Return [term, meaning, source] of each row."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_every_term_has_a_meaning_and_a_source() -> None:
    assert len(rows()) >= 80
    assert [row for row in rows() if len(row) != 3 or not all(row)] == []


def test_a_term_of_ours_has_a_reason() -> None:
    unexplained = [term for term, _, source in rows() if source.strip() == "ours"]
    assert unexplained == []


def test_terms_are_unique_and_sorted() -> None:
    terms = [term.casefold() for term, _, _ in rows()]
    assert terms == sorted(set(terms))


def test_a_meaning_is_short() -> None:
    assert [term for term, meaning, _ in rows() if len(meaning.split()) > MAX_WORDS] == []


def test_the_readme_and_the_architecture_link_to_it() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text("utf-8")
    assert "(glossary.md)" in (ROOT / "docs" / "architecture.md").read_text("utf-8")

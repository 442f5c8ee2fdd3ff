"""Identifiers and texts use the project's vocabulary; the banned words that a file still has may only become fewer.

``banned_words.yaml`` lists the words with their replacements, ``word_ratchet.yaml`` the number of them in each file. A
new file has none.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from tests.tidy import words


@pytest.mark.parametrize(("kind", "index"), [("identifiers", 0), ("texts", 1)])
def test_no_file_has_more_banned_words_than_before(kind: str, index: int) -> None:
    allowed = yaml.safe_load(words.RATCHET.read_text("utf-8"))
    wrong = [
        f"{file}: expected at most {allowed.get(file, [0, 0])[index]} banned words in {kind}, got {len(file_hits)}:\n"
        + "\n".join(f"  {file}:{hit.line} {hit.text}: write {hit.instead}" for hit in file_hits)
        for file, both in words.hits().items()
        if len(file_hits := both[index]) > allowed.get(file, [0, 0])[index]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "is_banned"),
    [
        ("place_of", True),
        ("FaultPlace", True),
        ("replace", False),
        ("one", True),
        ("_one", True),
        ("one_way", False),
    ],
)
def test_a_name_is_banned_by_its_words(name: str, is_banned: bool) -> None:
    assert (words.instead_of(name) is not None) is is_banned


def test_every_kind_of_name_is_read() -> None:
    module = ast.parse("class A:\n    b = 1\ndef f(c, *, d):\n    e = [g for g in c]\n    e.h = e")
    assert {name for _, name in words.names_defined(module)} == set("Abfcdegh")


def test_a_phrase_is_found_with_its_line_and_its_replacement(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("A line.\nThe run is over.\n")
    assert words.in_texts(path) == [words.Hit(2, "is over", "has ended")]

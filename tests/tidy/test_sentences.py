"""Sentences of the documentation have at most 25 words, cells of its tables at most 20."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.tidy import sentences
from tests.tidy.sources import relative

ALLOWED = yaml.safe_load(sentences.RATCHET.read_text("utf-8")) or {}


@pytest.mark.parametrize("page", sentences.pages(), ids=relative)
def test_a_page_has_no_more_long_sentences_and_cells_than_before(page: Path) -> None:
    text = page.read_text("utf-8")
    limits = ALLOWED.get(relative(page), [0, 0])
    kinds = (sentences.long_sentences(text), sentences.long_cells(text))
    for name, limit, long in zip(("sentences", "cells"), limits, kinds, strict=True):
        listed = "\n".join(f"  {each}" for each in long)
        assert len(long) <= limit, (
            f"expected at most {limit} long {name}, got {len(long)}:\n{listed}"
        )


def test_only_pages_that_exist_are_allowed_anything() -> None:
    assert ALLOWED.keys() <= {relative(page) for page in sentences.pages()}


def test_words_are_counted_to_the_end_of_a_sentence() -> None:
    fitting, long = "word " * 24 + "end.", "word " * 25 + "end."
    assert sentences.long_sentences(f"{fitting} {fitting}\n\n* {fitting}\n* {fitting}") == []
    assert sentences.long_sentences(f"{fitting} {long}") == [long]
    assert sentences.long_sentences(long.replace("word word", "word\nword", 1)) == [long]


def test_code_tables_and_headings_are_not_sentences() -> None:
    long = "word " * 40
    assert (
        sentences.long_sentences(f"# {long}\n\n    {long}\n\n| {long} |\n\n```\n{long}\n```") == []
    )


def test_cells_are_counted_alone() -> None:
    fitting, long = "word " * 20, "word " * 21
    text = f"| {fitting} | {long} |\n|---|---|\n\n{long}"
    assert sentences.long_cells(text) == [long.strip()]

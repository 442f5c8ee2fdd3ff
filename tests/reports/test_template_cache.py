"""Compiled templates are kept, and a cache that cannot be used costs time only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import DictLoader, Environment

from nemesis.reports.template_cache import template_cache

OPTIONS: dict[str, Any] = {"optimized": False}


def rendered() -> str:
    loader = DictLoader({"page": "{{ 1 + 1 }}"})
    return (
        Environment(loader=loader, bytecode_cache=template_cache(OPTIONS), **OPTIONS)
        .get_template("page")
        .render()
    )


def test_a_template_is_kept_and_a_damaged_one_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert rendered() == "2"
    [kept] = (file for file in tmp_path.rglob("*") if file.is_file())
    content = kept.read_bytes()
    kept.write_bytes(content[:-5])
    assert rendered() == "2"
    assert kept.read_bytes() == content


def test_without_a_cache_pages_are_made_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert template_cache(OPTIONS) is None
    assert rendered() == "2"

"""What the documentation names exists: links with their anchors, options of the command line, files and folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from nemesis.cli.app import COMMANDS, command_line
from tests.tidy.sources import ROOT, python_files

PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

OPTIONS_OF_OTHERS: Final = frozenset(
    {"--hypothesis-show-statistics", "--queue-bypass", "--save", "--volumes"}
)
"""Options of pytest, iptables, the benchmarks and docker compose that the documentation names."""

TOP_FOLDERS: Final = (
    "benchmarks", "checkers", "compose", "docs", "history", "nemesis", "reference", "reports", "tests", "workloads",
)  # fmt: skip

_LINK: Final = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_CODE: Final = re.compile(r"`([^`\n]+)`")
_FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH: Final = re.compile(rf"(?:{'|'.join(TOP_FOLDERS)})/[\w./*-]*")
_SOURCE_FILE: Final = re.compile(r"[\w./*-]+\.py")


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page))
    return {anchor(heading) for heading in headings}


def anchor(heading: str) -> str:
    """Return a heading in lower case, without punctuation, with hyphens for spaces."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Yield the relative links of a page that lead nowhere."""
    for link in _LINK.findall(_FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_missing = not target.exists()
        if is_missing or (fragment and fragment not in anchors(target.read_text("utf-8"))):
            yield link


@cache
def options() -> frozenset[str]:
    """Return every option of every command."""
    programs = (typer.main.get_command(command_line([name])) for name in COMMANDS)
    return frozenset(option for program in programs for option in _options_of(program))


def _options_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts
        yield from parameter.secondary_opts
    for child in getattr(command, "commands", {}).values():
        yield from _options_of(child)


def unknown_options(text: str) -> set[str]:
    """Return the options that a page names and no command has."""
    known = options() | OPTIONS_OF_OTHERS | {"--help"}
    return {option for option in _OPTION.findall(text) if option not in known}


def missing_paths(text: str) -> Iterator[str]:
    """Yield the paths in backticks that the repository does not have; ``*`` stands for any name.

    A source file may be named from the top, from ``reference/``, or by its name alone.
    """
    for code in _CODE.findall(_FENCE.sub("", text)):
        path = code.partition("::")[0]
        if _PATH.fullmatch(path):
            is_there = any(ROOT.glob(path.rstrip("/")))
        elif _SOURCE_FILE.fullmatch(path):
            folders = (ROOT, ROOT / "reference")
            is_there = path in source_files() or any(any(f.glob(path)) for f in folders)
        else:
            continue
        if not is_there:
            yield path


@cache
def source_files() -> frozenset[str]:
    """Return the names of all source files."""
    return frozenset(path.name for folder in TOP_FOLDERS for path in python_files(folder))


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page, page.read_text("utf-8"))) == []


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_every_option_exists(page: Path) -> None:
    assert unknown_options(page.read_text("utf-8")) == set()


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_every_path_exists(page: Path) -> None:
    assert list(missing_paths(page.read_text("utf-8"))) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# One `two`, three\n[a](#one-two-three) [b](#four) [c](no.md) [d](https://e.org/x) [e](page.md#five)"
    page.write_text(text, "utf-8")
    assert list(broken_links(page, text)) == ["#four", "no.md", "page.md#five"]


def test_an_unknown_option_is_found() -> None:
    assert unknown_options("`--seed 7`, `--sead 7` and `--json`, not a-- b or --- c") == {"--sead"}


def test_a_missing_path_is_found() -> None:
    text = "`checkers/framework/`, `checkers/no.py`, `nemesis/cli/*.py`, `docs/*.nothing`, `a/b`"
    assert list(missing_paths(text)) == ["checkers/no.py", "docs/*.nothing"]
    named = "`zk/zk_data.py`, `zk/no_data.py`, `election.py`, `no_election.py`, `Log.read`"
    assert list(missing_paths(named)) == ["zk/no_data.py", "no_election.py"]

"""The files of this repository that the tidy tests read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("history", "reference", "checkers", "workloads", "reports", "nemesis")
"""Folders of the product; ``nemesis/`` links to the others, and links are not followed."""
HELPERS = ("benchmarks", "compose", "tests", ".ci")
"""Folders around the product."""


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()

"""The list of modules in a package's docstring names all modules of the package, and none that does not exist.

The list is the bullets of the docstring. A package whose docstring has no bullet with a module has no list.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.tidy.sources import PACKAGES, ROOT, parsed, python_files, relative

INITS: Final = [
    path for path in python_files(*PACKAGES, "benchmarks") if path.name == "__init__.py"
]
_NAME: Final = re.compile(r"``([a-z_][a-z0-9_]*)``")
_BULLET: Final = re.compile(r"^\* .*(?:\n  .*)*", re.MULTILINE)


def modules(folder: Path) -> set[str]:
    """Return the names of the modules and packages directly inside a package."""
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def wrong_lines(docstring: str, existing: set[str]) -> list[str]:
    """Return what is wrong with the list of modules of a docstring."""
    listed = {name for bullet in _BULLET.findall(docstring) for name in _NAME.findall(bullet)}
    if not listed & existing:
        return []
    named = set(_NAME.findall(docstring))
    return [f"lists {name}, which is not a module of it" for name in sorted(listed - existing)] + [
        f"does not list its module {name}" for name in sorted(existing - named)
    ]


@pytest.mark.parametrize("init", INITS, ids=[relative(path) for path in INITS])
def test_a_package_lists_its_modules(init: Path) -> None:
    docstring = ast.get_docstring(parsed(init)) or ""
    assert wrong_lines(docstring, modules(init.parent)) == []


def test_a_list_with_a_missing_and_a_foreign_module_is_noticed() -> None:
    docstring = "A package.\n\n* ``one``   first\n* ``two``,\n  ``three``   others\n\nIt begins with ``four``."
    assert wrong_lines(docstring, {"one", "two", "four", "five"}) == [
        "lists three, which is not a module of it",
        "does not list its module five",
    ]


def test_a_docstring_without_a_list_may_name_some_modules(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("__init__.py", "one.py", "inner/__init__.py"):
        (tmp_path / name).touch()
    assert modules(tmp_path) == {"one", "inner"}
    assert wrong_lines("Start with ``one``.\n\n* ``invoke``   begins", modules(tmp_path)) == []


def test_packages_are_found() -> None:
    assert {relative(path) for path in INITS} >= {f"{name}/__init__.py" for name in PACKAGES}
    assert ROOT / "checkers" / "framework" / "__init__.py" in INITS

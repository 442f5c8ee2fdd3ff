"""Nothing calls what later patch releases of Python 3.11 added: Debian 12 has 3.11.2.

mypy and ruff know Python's minor versions alone, and developers' machines have the newest patch release.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
FOLDERS = (
    ".ci",
    "benchmarks",
    "checkers",
    "history",
    "nemesis",
    "reference",
    "reports",
    "tests",
    "workloads",
)
NEWER_KEYWORDS = {
    ("extract", "filter"),  # tarfile, 3.11.4
    ("extractall", "filter"),
    ("unpack_archive", "filter"),  # shutil, 3.11.4
    ("getaddresses", "strict"),  # email.utils, 3.11.10
    ("parseaddr", "strict"),
}
NEWER_NAMES = {
    "data_filter",  # tarfile, 3.11.4
    "fully_trusted_filter",
    "tar_filter",
    "GetReparseDeferralEnabled",  # pyexpat, 3.11.9
    "SetReparseDeferralEnabled",
}


def newer_than_3_11_0(source: str) -> Iterator[str]:
    """Yield each use of an attribute or argument that Python 3.11.0 does not have, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in NEWER_NAMES:
            yield f"{node.lineno}: {node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func.attr
            for keyword in node.keywords:
                if (called, keyword.arg) in NEWER_KEYWORDS:
                    yield f"{node.lineno}: {called}({keyword.arg}=)"


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_needs_a_later_patch_release_of_python_3_11(folder: str) -> None:
    files = list((PROJECT / folder).rglob("*.py"))
    assert files
    newer = [f"{file}:{use}" for file in files for use in newer_than_3_11_0(file.read_text())]
    assert newer == []


@pytest.mark.parametrize(
    "source",
    [
        'archive.extractall(folder, filter="data")',
        "archive.extraction_filter = tarfile.data_filter",
    ],
)
def test_a_newer_argument_or_name_is_found(source: str) -> None:
    assert list(newer_than_3_11_0(source))

"""The names of the package itself: few, loaded on first use, and nothing before."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nemesis


def modules_after(program: str) -> set[str]:
    """Return our modules that a new interpreter has loaded after running the program."""
    listed = f"{program}; import sys; print(*(m for m in sys.modules if m.startswith('nemesis')))"
    ran = subprocess.run(
        [sys.executable, "-c", listed], capture_output=True, text=True, check=True, timeout=60
    )
    return set(ran.stdout.split())


def test_importing_the_package_loads_nothing_else() -> None:
    assert modules_after("import nemesis") == {"nemesis"}
    assert modules_after("import nemesis; dir(nemesis)") == {"nemesis"}


def test_a_name_loads_its_module_on_first_use() -> None:
    loaded = modules_after("import nemesis; nemesis.Verdict")
    assert "nemesis.checkers.framework.model" in loaded
    assert "nemesis.simulation" not in loaded


@pytest.mark.parametrize("name", nemesis.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(nemesis, name) is not None
    assert name in dir(nemesis)
    assert nemesis.__doc__ is not None
    assert f"``{name}" in nemesis.__doc__


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(nemesis.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    typed = {
        (alias.asname or alias.name): (statement.module, alias.name)
        for statement in ast.walk(block)
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert typed == nemesis._HOMES
    assert set(typed) == set(nemesis.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'nemesis' has no attribute 'gremlin'"):
        nemesis.gremlin  # noqa: B018


def test_a_run_needs_the_public_names_alone() -> None:
    scenario = nemesis.load_scenario("partition-controller")
    assert scenario.name == "partition-controller"
    names = [check.name for check in nemesis.select(["hw-bounded"])]
    assert names

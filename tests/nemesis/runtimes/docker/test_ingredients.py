"""What goes into the image: all that a broker imports, nothing else, and a digest that changes with it."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.runtimes.docker import packages
from nemesis.runtimes.docker.ingredients import (
    OWN_PACKAGE,
    PROJECT,
    Ingredients,
    imported_files,
    imports,
)
from nemesis.support.errors import MissingRequirement
from nemesis.support.paths import cache_directory


@pytest.fixture(scope="module")
def ingredients() -> Ingredients:
    return Ingredients.installed()


def test_brokers_and_planted_bugs_start_from_the_code_alone(
    ingredients: Ingredients, tmp_path: Path
) -> None:
    ingredients.lay_out(tmp_path / "context", tmp_path_with_a_file(tmp_path))
    program = (
        "import nemesis.reference.__main__\n"
        "from nemesis.mutants.chosen import MUTANTS, choose_mutant\n"
        "for name in MUTANTS: choose_mutant(name).load().plant()\n"
        "import sys; print(*sorted(sys.modules))\n"
        "print(nemesis.reference.__file__)"
    )
    installed = next(p for p in sys.path if p.endswith("site-packages"))
    code = tmp_path / "context" / "code"
    said = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": f"{code}:{installed}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    modules, position = said.splitlines()
    assert position.startswith(str(code))
    imported = set(modules.split())
    assert imported.isdisjoint({"nemesis.checkers", "nemesis.workloads", "pyspark", "pyarrow"})
    assert imported >= set(packages.THIRD_PARTY)


def test_whatever_the_code_imports_is_in_the_image(
    ingredients: Ingredients, tmp_path: Path
) -> None:
    ingredients.lay_out(tmp_path / "context", tmp_path_with_a_file(tmp_path))
    providers = importlib.metadata.packages_distributions()
    needed: set[str] = set()
    for file in (tmp_path / "context" / "code").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module]
            for module in {name.partition(".")[0] for name in names} - {OWN_PACKAGE}:
                needed.update(providers.get(module, ()))
    there = {each.partition("==")[0] for each in packages.pinned(packages.THIRD_PARTY)}
    assert {name.replace("_", "-") for name in needed} <= there
    assert needed >= set(packages.THIRD_PARTY)


def tmp_path_with_a_file(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "package.py").write_text("")
    return folder


def test_the_context_holds_what_the_dockerfile_copies(
    ingredients: Ingredients, tmp_path: Path
) -> None:
    context = tmp_path / "context"
    ingredients.lay_out(context, tmp_path_with_a_file(tmp_path))
    lines = (context / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY ")]
    assert sorted(copied) == ["clock", "code", "node", "packages", "zookeeper"]
    assert all((context / name).exists() for name in copied)
    assert os.access(context / "node", os.X_OK)
    jars = [jar.name for jar in (context / "zookeeper").glob("*.jar")]
    assert any(jar.startswith("zookeeper-3") for jar in jars)


def test_every_ingredient_changes_the_digest(ingredients: Ingredients, tmp_path: Path) -> None:
    changed = tmp_path / "changed.py"
    changed.write_text("CHANGED = True\n")
    position = "code/nemesis/reference/trace.py"
    others = [
        ingredients.digest("another-base"),
        replace(ingredients, packages=("kio==9",)).digest("base"),
        replace(ingredients, code={**ingredients.code, position: changed}).digest("base"),
        replace(ingredients, code={**ingredients.code, "code/new.py": changed}).digest("base"),
        replace(ingredients, jars={}).digest("base"),
    ]
    assert ingredients.digest("base") == Ingredients.installed().digest("base")
    assert len({ingredients.digest("base"), *others}) == len(others) + 1


def test_a_checker_is_no_ingredient(ingredients: Ingredients) -> None:
    packages = {file.relative_to(PROJECT).parts[1] for file in ingredients.code.values()}
    assert packages >= {"history", "reference", "mutants"}
    assert packages.isdisjoint({"checkers", "workloads", "reports"})
    assert "code/nemesis/history/reader.py" not in ingredients.code


def test_imports_are_followed_wherever_they_are_written(tmp_path: Path) -> None:
    files = {
        "nemesis/__init__.py": "",
        "nemesis/start.py": "def main():\n    from nemesis.history import events\n    import os, kio\n",
        "nemesis/history/__init__.py": "from nemesis.history.words import Word\n",
        "nemesis/history/words.py": "Word = str\n",
        "nemesis/history/events.py": "import nemesis.start\n",
        "nemesis/history/unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sorted(imports(tmp_path / "nemesis" / "start.py")) == ["nemesis.history.events"]
    collected = [str(file) for file in imported_files(tmp_path, ("nemesis.start",))]
    assert collected == sorted(set(files) - {"nemesis/history/unused.py"})


def test_packages_are_pinned_with_all_that_they_require() -> None:
    pinned = packages.pinned(packages.THIRD_PARTY)
    names = [requirement.partition("==")[0] for requirement in pinned]
    assert names == ["cramjam", "crc32c", "kazoo", "kio", "msgspec", "typing-extensions"]


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(MissingRequirement, match="no-such-package is not installed"):
        packages.pinned(("no-such-package",))


def test_packages_that_cannot_be_had_are_named_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(MissingRequirement, match=r"packages .* \(kio==0.0.0\) could not be had: "):
        packages.unpacked(("kio==0.0.0",), "3.11")
    assert list(cache_directory().iterdir()) == []

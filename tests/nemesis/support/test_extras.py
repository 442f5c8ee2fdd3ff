"""Without the optional packages: a simulated run is judged, and what needs them is refused in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nemesis.cli import outcome as outcomes
from nemesis.cli.app import call
from nemesis.support.errors import EXIT_USAGE
from nemesis.support.extras import EXTRAS, sentence_about
from tests.tidy.sources import ROOT

BASE_ONLY = (
    "import sys\n"
    "for name in ('pyspark', 'numba', 'scipy', 'hypothesis', 'networkx'): sys.modules[name] = None\n"
    "from nemesis.__main__ import main\n"
    "main()\n"
)


def base(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as if none of the extras were installed."""
    return subprocess.run(
        [sys.executable, "-c", BASE_ONLY, *arguments],
        cwd=directory,
        env={**os.environ, "NEMESIS_RUNTIME_DIR": str(directory)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("base")
    simulated = ("--runtime", "simulation", "--seed", "1", "--time-limit", "15")
    ran = base(directory, "run", "topics", *simulated)
    assert ran.returncode == 0, ran.stderr
    return directory


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "store/latest"),
        ("report", "store/latest"),
        ("replay", "store/latest"),
        ("export", "store/latest", "ours.edn"),
        ("list",),
        ("--version",),
    ],
)
def test_the_base_does_its_work(directory: Path, arguments: tuple[str, ...]) -> None:
    ran = base(directory, *arguments)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("check", "store/latest", "--engine", "spark"), "spark"),
        (("run", "topics", "--runtime", "simulation", "--engine", "spark"), "spark"),
        (("run", "topics"), "local"),
    ],
)
def test_what_needs_an_extra_names_it(
    directory: Path, arguments: tuple[str, ...], extra: str
) -> None:
    ran = base(directory, *arguments)
    assert ran.returncode == EXIT_USAGE
    assert ran.stderr.count("\n") == 1
    assert f"pip install 'nemesis-kafka[{extra}]'" in ran.stderr


def test_every_package_is_in_the_extra_that_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package, extra in EXTRAS.items():
        named = " ".join(project["optional-dependencies"][extra])
        assert package in named
        assert not any(package in line for line in project["dependencies"])


@pytest.mark.parametrize(
    ("module", "is_named"), [("numba.core", True), ("pyspark", True), ("yaml", False), ("", False)]
)
def test_only_optional_packages_have_an_extra(module: str, is_named: bool) -> None:
    error = ModuleNotFoundError("No module", name=module)
    assert (sentence_about(error) is not None) is is_named


@pytest.mark.parametrize("is_compiled", [True, False])
def test_the_slow_path_is_reported_for_many_events(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_compiled: bool,
) -> None:
    monkeypatch.setattr(outcomes, "SLOW_EVENTS", 10)
    monkeypatch.setattr(outcomes, "has_compiler", lambda: is_compiled)
    simulated = ["--runtime", "simulation", "--seed", "1", "--time-limit", "15"]
    assert call(["run", "topics", *simulated, "--store", str(tmp_path)]) == 0
    assert ("nemesis-kafka[kernels]" in capsys.readouterr().err) is not is_compiled

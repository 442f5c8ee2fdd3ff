"""Spark starts fast, and starts also where what makes it fast is damaged or missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from nemesis.history import class_archive
from nemesis.history.worker_daemon import without_archives

START = """
from pathlib import Path
from nemesis.history import class_archive
class_archive.path = lambda: Path({archive!r})
from nemesis.history.spark import context, run_all, stop

def home(_):
    import pyspark
    return pyspark.__file__

print(run_all(context(), home, [0]))
stop()
"""


def test_workers_import_the_installed_package_and_nothing_out_of_an_archive() -> None:
    path = [
        "/app",
        "/spark/python/lib/pyspark.zip",
        "/spark/python/lib/py4j-0.10.9-src.zip",
        "/lib",
    ]
    assert without_archives(path) == ["/app", "/lib"]


def test_without_an_archive_the_jvm_is_told_of_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(class_archive, "DIRECTORY", tmp_path)
    assert class_archive.options() == ()
    class_archive.path().touch()
    assert f"-XX:SharedArchiveFile={class_archive.path()}" in class_archive.options()


@pytest.mark.e2e
def test_a_damaged_archive_is_not_in_the_way(tmp_path: Path) -> None:
    archive = tmp_path / "of another Java.jsa"
    archive.write_bytes(b"nothing of the kind" * 1000)
    code = START.format(archive=str(archive))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    (line,) = done.stdout.splitlines()
    assert "site-packages" in line
    assert ".zip" not in line


@pytest.mark.e2e
def test_spark_starts_in_the_locale_c_from_any_path(tmp_path: Path) -> None:
    packages = tmp_path / "Prüfstand"
    packages.symlink_to(Path(pyspark.__file__).parents[1], target_is_directory=True)
    (tmp_path / "für alle").mkdir()
    surroundings = {
        "LC_ALL": "C",
        "SPARK_HOME": str(packages / "pyspark"),
        "TMPDIR": str(tmp_path / "für alle"),
    }
    done = subprocess.run(
        [sys.executable, "-c", START.format(archive=str(tmp_path / "für alle" / "none.jsa"))],
        env={**os.environ, **surroundings},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "site-packages" in done.stdout

"""What stores the classes of a broker leaves no process behind and no draft, and knows which jars they are of."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from nemesis.targets.kafka.stored_classes import (
    class_archive,
    outdated_class_archives,
    store_classes,
    stored_classes,
    succeeds,
)

LEAVES_A_CHILD = "sleep 600 & echo $! >$0"
DEADLINE_S = 20.0


@pytest.mark.parametrize(
    ("end", "timeout_s", "outcome"),
    [
        pytest.param("exit 0", 20.0, True, id="success"),
        pytest.param("exit 1", 20.0, False, id="failure"),
        pytest.param("kill -9 $$", 20.0, False, id="killed"),
        pytest.param("wait", 0.5, False, id="too slow"),
    ],
)
def test_no_child_outlives_the_program(
    tmp_path: Path, end: str, timeout_s: float, *, outcome: bool
) -> None:
    file = tmp_path / "pid"
    script = f"{LEAVES_A_CHILD}; {end}"
    assert succeeds(["/bin/sh", "-c", script, str(file)], timeout_s) is outcome
    child = int(file.read_text())
    deadline = time.monotonic() + DEADLINE_S
    while is_running(child):
        assert time.monotonic() < deadline


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_broker_that_does_not_start_is_reported_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said: list[str] = []
    store_classes(tmp_path / "no-jars", said.append, with_quorum=False)
    assert said == [
        "the classes of Kafka could not be stored: brokers start more slowly without them"
    ]
    assert list((tmp_path / "cache" / "nemesis").iterdir()) == []


def test_a_cache_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so here the cache is a directory that is gone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gone = "nemesis.targets.kafka.stored_classes.cache_directory"
    monkeypatch.setattr(gone, lambda: tmp_path / "gone")
    said: list[str] = []
    store_classes(tmp_path / "no-jars", said.append, with_quorum=False)
    assert said == [
        "the classes of Kafka could not be stored: brokers start more slowly without them"
    ]


def test_stored_classes_are_used_for_the_jars_that_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a.jar").touch()
    assert stored_classes(jars) == ()
    archive = class_archive(jars)
    archive.touch()
    assert stored_classes(jars) == (archive,)
    (jars / "b.jar").touch()
    assert stored_classes(jars) == ()


@pytest.mark.parametrize("changed", ["release", "SHA256SUMS", "jars/a.jar"])
def test_stored_classes_are_renewed_with_the_jars_and_with_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Java is a home directory with a file ``release``, as all are that OpenJDK builds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    java, jars = tmp_path / "java" / "bin" / "java", tmp_path / "jars"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    jars.mkdir()
    files = {
        "release": tmp_path / "java" / "release",
        "SHA256SUMS": jars / "SHA256SUMS",
        "jars/a.jar": jars / "a.jar",
    }
    for file in files.values():
        file.write_text("before")
    before = class_archive(jars)
    before.touch()
    assert class_archive(jars) == before
    files[changed].write_text("afterwards")
    assert stored_classes(jars) == ()
    assert outdated_class_archives(class_archive(jars)) == [before]

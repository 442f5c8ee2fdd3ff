"""Compiling the library: once, whole or not at all, and one sentence when it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.runtimes.clock_control import library as module
from nemesis.runtimes.clock_control.library import environment
from nemesis.support.errors import MissingRequirement

compiled = module.wall_clock_library.__wrapped__
"""Asked again each time."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user who has never compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nemesis"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All the programs that there are."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def compiler(programs: Path, script: str) -> None:
    (programs / "cc").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "cc").chmod(0o755)


@pytest.mark.usefixtures("library")
def test_it_is_compiled_once_and_then_needs_no_compiler(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compiled()
    assert list(cache.iterdir()) == [path]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiled() == path


def test_no_compiler_has_a_cure_and_leaves_nothing(cache: Path, programs: Path) -> None:
    assert list(programs.iterdir()) == []
    with pytest.raises(
        MissingRequirement, match=r"no C compiler was found, and .* moves wall clocks needs"
    ):
        compiled()
    assert list(cache.iterdir()) == []


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(cache: Path, programs: Path) -> None:
    compiler(programs, "echo 'wall_clock.c:1: fatal error: dlfcn.h: No such file' >&2; exit 1")
    with pytest.raises(MissingRequirement, match=r"cc does not compile \(wall_clock.c:1: fatal"):
        compiled()
    assert list(cache.iterdir()) == []


def test_a_library_that_cannot_be_kept_is_missing_and_leaves_nothing(
    cache: Path, programs: Path
) -> None:
    compiler(programs, "exit 0")
    with pytest.raises(MissingRequirement, match=f"cannot be kept in {cache}: No such file"):
        compiled()
    assert list(cache.iterdir()) == []


def test_another_source_is_another_library(
    cache: Path, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler(programs, 'while [ "$1" != -o ]; do shift; done; echo made >"$2"')
    first = compiled()
    changed = tmp_path / "wall_clock.c"
    changed.write_bytes(module.SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(module, "SOURCE", changed)
    assert {first, compiled()} == set(cache.iterdir())
    assert first != compiled()


def test_a_path_that_cannot_be_preloaded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    with pytest.raises(MissingRequirement, match="which has a space or a colon"):
        compiled()


def test_what_is_preloaded_already_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/lib/a.so /lib/b.so")
    assert environment(Path("/lib/c.so"), Path("/run/page")) == {
        "LD_PRELOAD": "/lib/c.so /lib/a.so /lib/b.so",
        "NEMESIS_WALL_CLOCK": "/run/page",
    }

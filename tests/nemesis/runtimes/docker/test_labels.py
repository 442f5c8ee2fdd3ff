"""A label says whose a thing is; only what a dead harness of our own world made is an orphan."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nemesis.runtimes.docker import labels


def marked() -> dict[str, str]:
    return {labels.RUN: "0a1b", **labels.harness_labels(Path("/store/run"))}


def dead(marks: dict[str, str]) -> dict[str, str]:
    gone = subprocess.Popen(["true"])
    gone.wait()
    parts = marks[labels.HARNESS].split()
    return {**marks, labels.HARNESS: f"{gone.pid} {parts[1]} {parts[2]}"}


def test_what_a_live_harness_made_is_no_orphan() -> None:
    assert not labels.is_orphan(marked())


def test_what_a_dead_harness_made_is_an_orphan() -> None:
    assert labels.is_orphan(dead(marked()))


def test_a_pid_that_somebody_else_has_now_is_a_dead_harness() -> None:
    marks = marked()
    pid, started, namespace = marks[labels.HARNESS].split()
    assert labels.is_orphan({**marks, labels.HARNESS: f"{pid} {float(started) - 60} {namespace}"})


@pytest.mark.parametrize("missing", [labels.RUN, labels.HARNESS])
def test_what_a_person_brought_up_is_no_orphan(missing: str) -> None:
    marks = dead(marked())
    del marks[missing]
    assert not labels.is_orphan(marks)


@pytest.mark.parametrize("harness", ["", "12", "x y z", "12 1.5 pid:[1]"])
def test_what_cannot_be_understood_is_no_orphan(harness: str) -> None:
    assert not labels.is_orphan({labels.RUN: "0a1b", labels.HARNESS: harness})

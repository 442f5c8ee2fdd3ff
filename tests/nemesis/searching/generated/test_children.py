"""Forked processes: results, errors, hangs, too much memory, and a death; each is distinguished. Sleep is real here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from nemesis.searching.generated.children import Children, Ended, Limits
from nemesis.searching.generated.trial import Flags


def run(work: Callable[[], object], limits: Limits | None = None) -> Ended[object]:
    with Children[str](limits or Limits()) as children:
        children.start("work", work)
        while True:
            for key, ended in children.ended():
                assert key == "work"
                assert len(children) == 0
                return ended


def test_a_result_comes_back() -> None:
    assert run(lambda: {"a": 1}) == Ended({"a": 1})


def test_an_error_comes_back_as_a_sentence() -> None:
    assert run(lambda: 1 / 0) == Ended(None, "ZeroDivisionError: division by zero")


def test_a_process_that_dies_has_no_result() -> None:
    ended = run(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert (ended.result, ended.is_hung, ended.error) == (None, False, "its process ended with -9")


def spin() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("work", "limits"),
    [(spin, Limits(cpu_s=0.2)), (lambda: time.sleep(60), Limits(wall_s=0.2))],
)
def test_a_process_that_hangs_is_ended(work: Callable[[], object], limits: Limits) -> None:
    ended = run(work, limits)
    assert ended.is_hung
    assert ended.error.startswith("still at work")


def fill() -> None:
    data = bytearray(2**28)
    time.sleep(60)
    del data


def test_a_process_that_takes_too_much_memory_is_ended() -> None:
    ended = run(fill, Limits(memory_bytes=2**27))
    assert not ended.is_hung
    assert "memory" in ended.error


def test_flags_survive_the_process_that_set_them() -> None:
    from nemesis.mutants.probe import Probe

    flags = Flags()

    def work() -> None:
        probe = Probe(flags.note)
        probe.suppressed(condition=False)
        os.kill(os.getpid(), signal.SIGKILL)

    run(work)
    assert (flags.is_reached, flags.is_effective) == (True, False)
    flags.close()

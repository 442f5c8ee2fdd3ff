"""Setting a clock and reading it back: what a skew reports is measured, and nothing when nothing can be."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.interfaces.errors import FaultUnsupported, RuntimeFailure
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.clock_control import control_page, probe, wall_clocks
from nemesis.runtimes.clock_control.probe import Reading
from nemesis.runtimes.clock_control.wall_clocks import WallClocks
from nemesis.support.errors import MissingRequirement
from tests.nemesis.runtimes.clock_control.programs import PythonProgram

NODE = "broker-1"
OFFSET_TOLERANCE_MS = 20
DRIFT_TOLERANCE = 0.001

moments = st.integers(0, 10**17)
offsets = st.integers(-(10**14), 10**14)


@given(moments, moments, offsets, st.floats(-0.9, 9.0), st.integers(10**7, 10**9))
def test_offset_and_drift_come_back_from_two_looks(
    first_ns: int, boot_ns: int, offset_ns: int, drift: float, apart_ns: int
) -> None:
    def printed(at_ns: int, ahead_ns: int) -> str:
        return f"{at_ns - 40} {boot_ns + at_ns + ahead_ns} {at_ns + 40}"

    second_ns = first_ns + apart_ns
    said = (
        f"{printed(first_ns, offset_ns)} {printed(second_ns, offset_ns + round(drift * apart_ns))}"
    )
    result = probe.state(said, true=Reading(at_ns=second_ns + 77, wall_ns=boot_ns + second_ns + 77))
    assert result.offset_ns == offset_ns
    assert result.drift == pytest.approx(drift, abs=1e-6)
    earlier_ns = first_ns - 10**9
    assert result.offset_ms_at(earlier_ns) == pytest.approx(
        offset_ns / 1e6 - drift * 1000, abs=0.01
    )


@pytest.mark.parametrize(
    ("offset_ms", "drift"), [(3_600_000, 0.0), (-86_400_000, 0.5), (0, -0.5), (0, 9.0), (0, 0.0)]
)
def test_a_clock_that_was_set_is_read_back(
    library: Path, tmp_path: Path, offset_ms: int, drift: float
) -> None:
    clocks = WallClocks(tmp_path)
    clocks.create([NODE])
    assert clocks.unsupported is None
    with PythonProgram(library, tmp_path / control_page.DIRECTORY / NODE) as node:
        assert node.ask("answer = 1") == 1
        set_to = clocks.skew(NODE, node.pid, offset_ms=offset_ms, drift=drift)
        assert asyncio.run(set_to) == {
            "preloaded": True,
            "offset_ms": pytest.approx(offset_ms, abs=OFFSET_TOLERANCE_MS),
            "drift": pytest.approx(drift, abs=DRIFT_TOLERANCE),
        }


def test_nothing_is_said_of_a_node_without_the_library(library: Path, tmp_path: Path) -> None:
    clocks = WallClocks(tmp_path)
    clocks.create([NODE])
    skewed = asyncio.run(clocks.skew(NODE, os.getpid(), offset_ms=1_000, drift=0.0))
    assert skewed == {"preloaded": False}


def test_without_the_library_clocks_cannot_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> Path:
        raise MissingRequirement("no C compiler was found")

    monkeypatch.setattr(wall_clocks, "wall_clock_library", nothing)
    clocks = WallClocks(tmp_path)
    clocks.create([NODE])
    assert clocks.unsupported == Unsupported("no C compiler was found")
    assert clocks.environment(NODE) == {}
    words = "the wall clock of broker-1 cannot be moved: no C compiler was found"
    with pytest.raises(FaultUnsupported, match=words):
        asyncio.run(clocks.skew(NODE, os.getpid(), offset_ms=1_000, drift=0.0))


def test_a_clock_that_is_not_there_is_named(library: Path, tmp_path: Path) -> None:
    clocks = WallClocks(tmp_path)
    with pytest.raises(
        RuntimeFailure, match=r"the clock of broker-1 cannot be set: .*No such file"
    ):
        asyncio.run(clocks.skew(NODE, os.getpid(), offset_ms=1_000, drift=0.0))


def test_a_probe_that_fails_says_why(
    library: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PROGRAM", "import sys; sys.exit('out of time')")
    with pytest.raises(RuntimeFailure, match="the clock broker-1 cannot be asked: out of time"):
        asyncio.run(probe.ask(library, page))


def test_the_harness_keeps_true_time_while_a_clock_is_off(library: Path, tmp_path: Path) -> None:
    """The library is in the nodes' environment, never in the harness's own."""
    clocks = WallClocks(tmp_path)
    clocks.create([NODE])
    before: dict[str, Any] = dict(os.environ)
    begin_s = time.time()
    with PythonProgram(library, tmp_path / control_page.DIRECTORY / NODE) as node:
        asyncio.run(clocks.skew(NODE, node.pid, offset_ms=3_600_000, drift=0.0))
    assert 0 <= time.time() - begin_s < 60
    assert dict(os.environ) == before

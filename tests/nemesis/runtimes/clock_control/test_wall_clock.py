"""The library under a real Python: which clocks it moves, which it leaves alone, and that no reading is torn."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nemesis.runtimes.clock_control import control_page
from nemesis.runtimes.clock_control.control_page import ClockSetting
from tests.nemesis.runtimes.clock_control.programs import PythonProgram

HOUR_MS = 3_600_000
HOUR_S = 3_600.0
NEAR_S = 60.0
"""Nobody's clock is off by so little here, and no machine is so slow."""

C_LIBRARY = """
import ctypes
c = ctypes.CDLL(None)
class Pair(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("fraction", ctypes.c_long)]
def filled(call, *arguments, before=()):
    pair = Pair()
    call(*before, ctypes.byref(pair), *arguments)
    return pair.seconds
"""

WALL_CLOCKS = {
    "time": "import time; answer = time.time()",
    "time_ns": "import time; answer = time.time_ns() / 1e9",
    "datetime": "import datetime; answer = datetime.datetime.now().timestamp()",
    "localtime": "import time; answer = time.mktime(time.localtime())",
    "CLOCK_REALTIME": "import time; answer = time.clock_gettime(time.CLOCK_REALTIME)",
    "CLOCK_REALTIME_COARSE": "import time; answer = time.clock_gettime(5)",
    "time(2)": C_LIBRARY + "answer = c.time(None)",
    "time(2) by pointer": C_LIBRARY
    + "n = ctypes.c_long(); c.time(ctypes.byref(n)); answer = n.value",
    "gettimeofday": C_LIBRARY + "answer = filled(c.gettimeofday, None)",
    "timespec_get": C_LIBRARY + "answer = filled(c.timespec_get, 1)",
}

OTHER_CLOCKS = (
    "CLOCK_MONOTONIC",
    "CLOCK_MONOTONIC_RAW",
    "CLOCK_BOOTTIME",
    "CLOCK_PROCESS_CPUTIME_ID",
)


def set_clock(page: Path, *, offset_ms: int = 0, drift: float = 0.0, since_s: float = 0.0) -> None:
    since_ns = time.time_ns() - round(since_s * 1e9)
    control_page.write(page, ClockSetting(since_ns, offset_ms, drift))


@pytest.mark.parametrize("name", WALL_CLOCKS)
def test_every_way_to_read_the_wall_clock_follows_the_page_live(
    program: PythonProgram, page: Path, name: str
) -> None:
    for offset_ms in (0, HOUR_MS, -24 * HOUR_MS, 0):
        set_clock(page, offset_ms=offset_ms)
        ahead_s = program.ask(WALL_CLOCKS[name]) - time.time()
        assert ahead_s == pytest.approx(offset_ms / 1000, abs=NEAR_S)


@pytest.mark.parametrize("name", OTHER_CLOCKS)
def test_no_other_clock_is_moved(program: PythonProgram, page: Path, name: str) -> None:
    code = f"import time; answer = time.clock_gettime(time.{name})"
    before_s = program.ask(code)
    set_clock(page, offset_ms=HOUR_MS, drift=9.0, since_s=HOUR_S)
    assert before_s <= program.ask(code) < before_s + NEAR_S


@pytest.mark.parametrize(("drift", "gained_s"), [(0.5, HOUR_S / 2), (-0.9, -0.9 * HOUR_S)])
def test_a_drift_gains_on_top_of_the_offset_since_it_was_set(
    program: PythonProgram, page: Path, drift: float, gained_s: float
) -> None:
    set_clock(page, offset_ms=HOUR_MS, drift=drift, since_s=HOUR_S)
    ahead_s = program.ask(WALL_CLOCKS["time"]) - time.time()
    assert ahead_s == pytest.approx(HOUR_S + gained_s, abs=NEAR_S)


def test_a_drifting_clock_never_goes_back(program: PythonProgram, page: Path) -> None:
    set_clock(page, offset_ms=-HOUR_MS, drift=-0.9)
    observed = program.ask("import time; answer = [time.time_ns() for _ in range(20_000)]")
    assert observed == sorted(observed)
    assert observed[-1] > observed[0]


def test_no_reading_is_made_of_two_settings(program: PythonProgram, page: Path) -> None:
    """Three settings of one and the same clock, whose parts differ by hours: any mixture is off by as much."""
    now_ns, hour_ns = time.time_ns(), round(HOUR_S * 1e9)
    same_clock = [
        ClockSetting(now_ns - hours * hour_ns, offset_ms=-9 * hours * HOUR_MS, drift=9.0)
        for hours in range(3)  # not two: each place on the page must change
    ]
    control_page.write(page, same_clock[0])
    program.tell(
        "import time\n"
        "start_ns, true_ns = time.monotonic_ns(), time.time_ns()\n"
        "end_ns = start_ns + 400_000_000\n"
        "worst, readings = 0, 0\n"
        "while (now_ns := time.monotonic_ns()) < end_ns:\n"
        "    worst = max(worst, abs(time.time_ns() - true_ns - 10 * (now_ns - start_ns)))\n"
        "    readings += 1\n"
        "answer = worst, readings"
    )
    end_s = time.monotonic() + 0.35
    writes = 0
    while time.monotonic() < end_s:
        control_page.write(page, same_clock[writes % 3])
        writes += 1
    worst_ns, readings = program.answer()
    assert writes > 100
    assert readings > 1_000
    assert worst_ns < HOUR_S * 1e9


@pytest.mark.parametrize("content", [None, b"", bytes(control_page.SIZE_BYTES - 1)])
def test_without_a_whole_page_the_clock_is_right(
    library: Path, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "page"
    if content is not None:
        path.write_bytes(content)
    with PythonProgram(library, path) as program:
        assert abs(program.ask(WALL_CLOCKS["time"]) - time.time()) < NEAR_S


def test_a_directory_in_place_of_the_page_is_none(library: Path, tmp_path: Path) -> None:
    """The engine makes one for a mounted file that is missing."""
    with PythonProgram(library, tmp_path) as program:
        assert abs(program.ask(WALL_CLOCKS["time"]) - time.time()) < NEAR_S


def test_a_program_that_is_given_no_page_has_the_right_time(library: Path) -> None:
    with PythonProgram(library, None) as program:
        assert abs(program.ask(WALL_CLOCKS["time"]) - time.time()) < NEAR_S

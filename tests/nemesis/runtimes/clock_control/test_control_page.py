"""The page as the library reads it: the setting in turn is always a whole one."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from nemesis.runtimes.clock_control import control_page
from nemesis.runtimes.clock_control.control_page import ClockSetting
from tests.nemesis.runtimes.clock_control.programs import PythonProgram

settings = st.builds(
    ClockSetting,
    since_ns=st.integers(0, 2**62),
    offset_ms=st.integers(-86_400_000, 86_400_000),
    drift=st.integers(-900_000, 9_000_000).map(lambda millionths: millionths / 1e6),
)


def in_turn(page: bytes) -> ClockSetting:
    """Read as ``wall_clock.c`` does."""
    since_ns, offset_ns, drift_ppb = control_page.SETTING.unpack_from(
        page, control_page.SETTINGS_AT + (page[0] & 1) * control_page.SETTING.size
    )
    return ClockSetting(since_ns, offset_ns // control_page.NS_PER_MS, drift_ppb / control_page.PPB)


def test_a_new_page_is_of_a_clock_that_is_right(tmp_path: Path) -> None:
    path = tmp_path / "clocks" / "broker-1"
    control_page.create(path)
    assert in_turn(path.read_bytes()) == ClockSetting(0, 0, 0.0)


@given(st.lists(settings, min_size=1, max_size=600))
def test_the_last_setting_written_is_in_turn_and_the_one_before_is_untouched(
    written: list[ClockSetting],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "page"
        control_page.create(path)
        for setting in written:
            before = path.read_bytes()
            control_page.write(path, setting)
            after = path.read_bytes()
            assert in_turn(after) == setting
            assert in_turn(before[:1] + after[1:]) == in_turn(before)
            assert len(after) == control_page.SIZE_BYTES


def test_the_kernel_knows_who_has_the_page(program: PythonProgram, page: Path) -> None:
    assert program.ask("answer = 1") == 1
    assert control_page.is_mapped(page, program.pid)
    assert not control_page.is_mapped(page, os.getpid())
    assert not control_page.is_mapped(page.with_name("no-such-page"), program.pid)
    assert not control_page.is_mapped(page, 2**22 + 1)

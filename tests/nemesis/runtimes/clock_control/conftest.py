from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nemesis.runtimes.clock_control import control_page
from nemesis.runtimes.clock_control.library import wall_clock_library
from nemesis.support.errors import MissingRequirement
from tests.nemesis.runtimes.clock_control.programs import PythonProgram


@pytest.fixture(scope="module")
def library() -> Path:
    """The library; on a machine that cannot compile it the test is skipped."""
    try:
        return wall_clock_library()
    except MissingRequirement as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clocks") / "broker-1"
    control_page.create(path)
    return path


@pytest.fixture(scope="module")
def program(library: Path, page: Path) -> Iterator[PythonProgram]:
    """A Python that runs as long as the tests of a module, under one page."""
    with PythonProgram(library, page) as running:
        yield running

"""Without numba and scipy the checkers find the same: in all smallest histories, and in graphs of Hypothesis."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.framework.compiled import _interpreted
from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.components import components, strong_components
from tests.tidy.sources import ROOT

WITHOUT = (
    "import sys\n"
    "sys.modules['numba'] = sys.modules['scipy'] = None\n"
    "from nemesis.checkers.framework.compiler import has_compiler\n"
    "assert not has_compiler()\n"
)
PAGE = WITHOUT + (
    "from nemesis.checkers.pages import findings_page\nsys.stdout.write(findings_page())\n"
)
TESTS = WITHOUT + "import pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_the_compiler_is_installed_for_tests() -> None:
    assert has_compiler()


def test_the_smallest_histories_have_the_same_findings() -> None:
    written = run(PAGE)
    assert written.returncode == 0, written.stderr
    assert written.stdout == (ROOT / "docs" / "findings.md").read_text("utf-8")


@pytest.mark.parametrize("file", ["cycles/test_smallest.py"])
def test_tests_of_kernels_pass_in_python(file: str) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-m", "not nightly")
    passed = run(TESTS, *options, f"tests/checkers/{file}")
    assert passed.returncode == 0, passed.stdout[-2000:]


EDGES = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30),
    )
)


@given(EDGES, st.booleans())
def test_components_are_those_of_scipy(
    graph: tuple[int, list[tuple[int, int]]], is_strong: bool
) -> None:
    count, edges = graph
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    known = components(count, source, target, is_strong=is_strong)
    both = (source, target)
    if not is_strong:
        both = (np.concatenate([source, target]), np.concatenate([target, source]))
    own = strong_components(count, *both)
    same_by_scipy, same = (labels[:, None] == labels[None, :] for labels in (known, own))
    assert (same_by_scipy == same).all()


def test_interpreted_kernels_wrap_around_as_compiled_ones_do() -> None:
    double = _interpreted(lambda number: number * np.int64(2))
    assert double(np.int64(2**62)) == -(2**63)

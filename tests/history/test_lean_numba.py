"""numba compiles without the libraries that are hidden from it, and others can import them as before."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
{before}
from nemesis.history.lean_numba import HIDDEN, njit

assert njit(lambda number: number + 1)(1) == 2
print(sorted(set(HIDDEN) & set(sys.modules)))
import scipy.linalg
print(scipy.linalg.det([[2.0]]))
"""


def said(before: str = "") -> list[str]:
    """Ask a process of its own: this one may have imported anything."""
    program = PROGRAM.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_kernels_compile_without_what_is_hidden_and_others_import_it() -> None:
    assert said() == ["[]", "2.0"]


def test_what_was_imported_before_stays() -> None:
    assert said("import scipy.linalg") == ["['scipy']", "2.0"]

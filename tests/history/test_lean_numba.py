"""numba compiles without the libraries that are hidden from it, and others can import them as before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


KERNEL = """
import numpy as np
from nemesis.history.lean_numba import kernel


def _doubled(number):
    return np.full(2, number).sum()


doubled = kernel(_doubled)
"""
REGISTERED = "numba.typed.typeddict"
"""A module that numba imports to compile, and not to load."""


def test_a_kernel_on_disk_is_loaded_without_what_a_compilation_registers(tmp_path: Path) -> None:
    (tmp_path / "a_kernel.py").write_text(KERNEL, "utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    environment.pop("NUMBA_CACHE_DIR", None)

    def said_by(*numbers: str) -> list[str]:
        program = f"import sys, a_kernel\nfor number in ({', '.join(numbers)},):\n"
        program += f"    print(a_kernel.doubled(number), {REGISTERED!r} in sys.modules)\n"
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert said_by("2") == ["4 True"]
    # Other types are compiled after some were loaded.
    assert said_by("3", "1.5", "4") == ["6 False", "3.0 True", "8 True"]
    assert said_by("1.5", "2") == ["3.0 False", "4 False"]

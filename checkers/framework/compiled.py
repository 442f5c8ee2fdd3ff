"""Kernels compiled by numba: for walks over millions of rows that numpy cannot express.

Modules with kernels are imported where a check needs them, not with the package: numba takes half a second to import,
and a small history of our own runs needs none. Compiled code is kept on disk beside the module.

Limits: numba compiles anew what is in a file that has changed, and does not look at the files of what is called from
there. So a kernel calls only kernels of its own file (a test says so); constants of other files that it uses never
change. Without numba the kernels run as Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

import numpy as np

from nemesis.checkers.framework.compiler import has_compiler

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function compiled for the types that it is called with, at the first call with them."""
    if not has_compiler():
        return _interpreted(function)
    from nemesis.history.lean_numba import kernel

    return cast("Callable[P, R]", kernel(function))


def _interpreted(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with compiled code's arithmetic: numbers of 64 bits that wrap around."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*arguments, **options)

    return call

"""Compiles the kernels of plain histories. To import this module takes half a second, for numba's sake."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from nemesis.history.lean_numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function compiled, and free of Python's lock, for the types that it is called with."""
    return cast("Callable[P, R]", njit(cache=True, nogil=True)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Return a small function that other kernels call, compiled as a part of each caller.

    Without this, a kernel that calls one for each character takes half as long again.
    """
    return cast("Callable[P, R]", njit(cache=True, nogil=True, inline="always")(function))

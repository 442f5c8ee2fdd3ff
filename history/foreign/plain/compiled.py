"""Compiles the kernels of plain histories. To import this module takes half a second, for numba's sake."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from nemesis.history.lean_numba import kernel

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function compiled, and free of Python's lock, for the types that it is called with."""
    return cast("Callable[P, R]", kernel(function, nogil=True))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that other kernels call for each character or line, compiled as a part of each caller.

    A call takes an array as seven numbers, and the columns of ``Lines`` as seventy: kernels that call none for a line
    take half as long. They are compiled for longer, however: what a line calls once may well stay a call.
    """
    return cast("Callable[P, R]", kernel(function, nogil=True, inline="always"))

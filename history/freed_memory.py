"""Memory that a task frees is kept for its next arrays.

The idea: a row group is looked at in some fifty arrays of half a megabyte, each freed soon after. The C library by
default gives much of that back to the system at once, and the kernel has to clear every page of the next array: a
quarter of the time of a check, a third where polls are long. Told to keep it, the library hands out what the last row
group had.

Arrow has an allocator of its own, which gives back what was not used for ten milliseconds; on a busy machine that is
less than a row group takes. So it is told to use the C library's, too.

Limits: GNU's C library only; others go on as they are. Arrays larger than ``LARGE_BYTES`` go back at once, as before.
Source: mallopt(3), malloc_trim(3).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

import pyarrow as pa

LARGE_BYTES: Final = 64 * 1024 * 1024
"""Larger blocks are mapped one by one: their pages are large, too, and cost little."""
KEPT_BYTES: Final = 256 * 1024 * 1024
"""Of what is free at the end of the heap, so much may stay."""
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3


@cache
def keep_freed_memory() -> None:
    """Let this process keep what it frees; does something the first time only."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        pa.set_memory_pool(pa.system_memory_pool())


def give_back_freed_memory() -> None:
    """Give the system what is free after all: where many small arrays have become few large ones, it is much."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)

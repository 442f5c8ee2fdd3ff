"""Whether kernels can be compiled here: the extra ``kernels`` of the package brings numba and scipy.

Without numba a check takes the way through arrays that it takes for small histories, or runs the kernel as Python. The
results are the same; more than a million events take minutes. To import numba takes half a second, so it is looked for.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def has_compiler() -> bool:
    """Return whether numba is installed."""
    return find_spec("numba") is not None

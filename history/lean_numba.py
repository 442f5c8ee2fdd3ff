"""numba, without what takes it long and no kernel here uses.

numba looks for SciPy's linear algebra and for CFFI when it compiles or loads its first kernel, whether or not one needs
them. Their import takes 0.3 s, as long as that of numba itself. It works without them, so they are hidden from it for
that moment. And it registers everything that it can compile before it loads its first kernel from disk, which takes
0.2 s: ``kernel`` leaves this to the first compilation.

Limits: kernels that are imported from here have neither linear algebra nor functions of CFFI. Another thread must not
import either library at the same time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final, cast

HIDDEN: Final = ("scipy", "cffi")
_ASKING: Final = ("numba.np.arraymath", "numba.core.typing.cffi_utils")
"""The modules of numba that look for them."""


@contextmanager
def _hidden() -> Iterator[None]:
    """Let the imports of what is hidden fail, if they were not imported before."""
    modules = cast("dict[str, object]", sys.modules)
    names = [name for name in HIDDEN if name not in modules]
    modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del modules[name]


with _hidden():
    for _name in _ASKING:
        # These modules are numba's own and may move. Then only the time is lost.
        with suppress(ImportError):
            import_module(_name)

from numba import njit, types  # noqa: E402 - after what it would have imported
from numba.core.caching import FunctionCache  # noqa: E402
from numba.core.runtime import rtsys  # noqa: E402

__all__ = ["kernel", "njit", "types"]


class _Loading(FunctionCache):  # type: ignore[misc]  # numba has no types
    """The code of a kernel on disk. To load it takes numba's runtime alone; a compilation registers what it needs."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for the types of a call; None if they were not compiled yet."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Callable[..., Any], **options: bool | str) -> Any:
    """Return the function compiled with these options of ``njit``, its code kept on disk beside its module."""
    if not hasattr(FunctionCache, "_load_overload"):
        # numba's own and may move, as above.
        return njit(cache=True, **options)(function)
    compiled = njit(**options)(function)
    compiled._cache = _Loading(function)  # noqa: SLF001 - as ``enable_caching`` does, with a class of its own
    return compiled

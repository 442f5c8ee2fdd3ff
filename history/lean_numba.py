"""numba, without the import of libraries that no kernel here uses.

numba looks for SciPy's linear algebra and for CFFI when it compiles or loads its first kernel, whether or not one needs
them. Their import takes 0.3 s, as long as that of numba itself. It works without them, so they are hidden from it for
that moment.

Limits: kernels that are imported from here have neither linear algebra nor functions of CFFI. Another thread must not
import either library at the same time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final, cast

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

__all__ = ["njit", "types"]

"""The smallest histories that break long-fork."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.transactions import r, together, w

_WRITES: Final = ([w(0, 1)], [w(1, 1)])
LONG_FORK: Final = (
    tuple(together(*_WRITES, [r(0, 1), r(1)], [r(1, 1), r(0)])),
    tuple(together(*_WRITES, [w(2, 1)], [r(0, 1), r(1)], [r(1, 1), r(2)], [r(2, 1), r(0)])),
    tuple(together([w(0, 1)], [r(0, 1), r(0)])),
)

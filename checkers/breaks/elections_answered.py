"""The smallest histories that break preferred elections."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.administration import asked
from nemesis.checkers.breaks.events import elected, history, state

ELECTIONS_ANSWERED: Final = (
    history(elected(1, 5, 2, [1, 2]), asked(3, "elect-leaders", partition=0)),
    history(
        state(4, 10, 1, 0, [1, 2]),
        state(5, 10, 1, 1, [1, 2]),
        elected(3, 5, 1, [1, 2], strategy="preferred"),
    ),
)

"""linearizable-mutex: one at a time holds it.

Every acquire and release that succeeded had its effect at one moment between its invocation and its completion: an
acquire finds the mutex free, a release finds it held. One of unknown outcome had its effect once after its invocation,
or never. Nobody owns the mutex, as in Knossos: a release by somebody else is no finding.
Smallest break: an acquire is over; another one succeeds, and nothing was released.

Decided by ``search``, key by key; it may give up at its bound: ``unknown``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import Listed
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import (
    OK,
    Operations,
    by_key,
)
from nemesis.checkers.linearizable.search import LIMIT, Effect, GaveUp, search
from nemesis.history.sources import EventSource

FREE: Final = 0
HELD: Final = 1
EFFECTS: Final = (Effect("acquire", FREE, HELD), Effect("release", HELD, FREE))


class LinearizableMutex(ObjectCheck):
    fs = tuple(effect.f for effect in EFFECTS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LINEARIZABLE_MUTEX,)

    def __init__(self, limit: int = LIMIT) -> None:
        """``limit``: configurations that a search may try beyond ``possible.FREE`` for each operation."""
        self.limit = limit

    def decide(self, operations: Operations, lists: Listed) -> Results:  # noqa: ARG002
        findings = [self._key(of_key) for of_key in by_key(operations)]
        return conclude(
            LINEARIZABLE_MUTEX,
            checked=int(np.count_nonzero(operations.outcome == OK)),
            findings=[result for result in findings if result is not None],
        )

    def _key(self, of_key: Operations) -> Finding | None:
        effects = [EFFECTS[f] for f in of_key.f.tolist()]
        search_result = search(of_key, effects, FREE, self.limit)
        if search_result is None:
            return None
        if isinstance(search_result, GaveUp):
            return phrases.gave_up(self.name, of_key, search_result, self.limit)
        return phrases.misfit(self.name, of_key, effects, search_result, _state_name)


def _state_name(state: int) -> str:
    return "free" if state == FREE else "held"


LINEARIZABLE_MUTEX: Final = Property(
    name="linearizable-mutex",
    promise="At any moment one process at most holds the lock.",
    unit="operations",
    unknown="The search for an order gave up at its bound, or events cannot be paired to operations.",
    source="Herlihy and Wing (1990); Wing and Gong (1993); Knossos.",
    check=LinearizableMutex,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.LINEARIZABLE_MUTEX,
)

"""linearizable-key-value: puts, appends and gets of a key's text happen at one moment each.

A put replaces the text, an append adds to its end, a get returns it. Every operation that succeeded had its effect at
one moment between its invocation and its completion. One of unknown outcome had its effect once after its invocation,
or never. A key that was never written has the empty text.
Smallest break: append "a" has ended; a get that begins afterwards returns "".

Decided by ``depth_search``, key by key; it may give up at its bound: ``unknown``. Puts and appends of unknown outcome
are left out if their text stands in nothing that a get returned. They can have happened only where a put replaced them
before any get, so leaving them out changes nothing.

Limits: the texts of all operations fit into memory. One finding for each key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.depth_search import LIMIT, Step, search_states
from nemesis.checkers.linearizable.elements import Listed
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import INFO, OK, Operations, by_key
from nemesis.checkers.linearizable.search import GaveUp
from nemesis.history.sources import EventSource

FS: Final = ("put", "append", "get")
PUT, APPEND, GET = range(len(FS))
MAX_SHOWN: Final = 40
"""Characters of a text that a finding shows: the last ones."""


_DEAD: Final = object()
"""A text that begins like none that a get returned."""


class TextEffect(NamedTuple):
    f: int
    text: str


class LinearizableKeyValue(ObjectCheck):
    fs = FS
    lists = FS

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LINEARIZABLE_KEY_VALUE,)

    def __init__(self, limit: int = LIMIT) -> None:
        """``limit``: states that a search may try beyond 20 for each operation."""
        self.limit = limit

    def decide(self, operations: Operations, lists: Listed) -> Results:
        texts = _texts(lists)
        findings = [self._key(of_key, texts) for of_key in by_key(operations)]
        return conclude(
            LINEARIZABLE_KEY_VALUE,
            checked=int(np.count_nonzero((operations.f == GET) & (operations.outcome == OK))),
            findings=[result for result in findings if result is not None],
        )

    def _key(self, of_key: Operations, texts: dict[int, str]) -> Finding | None:
        effects = list(_effects(of_key, texts))
        kept = _kept(of_key, effects)
        of_key = of_key.select(np.array(kept, dtype=np.int64))
        effects = [effects[position] for position in kept]
        is_look = np.asarray(of_key.f == GET)
        step = _coarse(sorted(_returned(of_key, effects)))
        result = search_states(of_key, effects, is_look, "", step, self.limit, _step)
        if result is None:
            return None
        if isinstance(result, GaveUp):
            return phrases.gave_up(self.name, of_key, result, self.limit)
        return phrases.misfit(self.name, of_key, effects, result, text_name, _effect_name)


def _texts(lists: Listed) -> dict[int, str]:
    """The text that each row states; a row without an entry states the empty one."""
    cuts = np.flatnonzero(np.diff(lists.row)) + 1
    edges = [0, *cuts.tolist(), len(lists.row)]
    characters = lists.value.astype("<u4")
    return {
        int(lists.row[start]): characters[start:end].tobytes().decode("utf-32-le")
        for start, end in pairwise(edges)
        if start < end
    }


def _effects(operations: Operations, texts: dict[int, str]) -> Iterator[TextEffect]:
    """What each operation does or returned."""
    columns = (operations.f, operations.invoked, operations.completed)
    for f, invoked, completed in zip(*(column.tolist() for column in columns), strict=True):
        first, second = (completed, invoked) if f == GET else (invoked, completed)
        yield TextEffect(f, texts.get(first) or texts.get(second) or "")


def _kept(operations: Operations, effects: list[TextEffect]) -> list[int]:
    """The positions of operations without those in doubt whose text no get returned."""
    returned = _returned(operations, effects)
    return [
        position
        for position, (effect, outcome) in enumerate(
            zip(effects, operations.outcome.tolist(), strict=True)
        )
        if outcome != INFO or any(effect.text in text for text in returned)
    ]


def _returned(operations: Operations, effects: list[TextEffect]) -> set[str]:
    """The texts that gets returned."""
    outcomes = operations.outcome.tolist()
    return {
        effect.text
        for effect, outcome in zip(effects, outcomes, strict=True)
        if effect.f == GET and outcome == OK
    }


def _coarse(returned: list[str]) -> Step:
    """Return the steps between texts, where all texts that no get can return any more are one.

    No append makes a text begin like a returned one if it does not yet, so all of these texts allow the same. That
    keeps appends at the same time from being searched in all their orders. ``returned``: sorted.
    """

    def step(state: Any, effect: TextEffect) -> Any:
        if state is _DEAD and effect.f != PUT:
            return _DEAD if effect.f == APPEND else None
        after = _step(state, effect)
        if after is None or effect.f == GET:
            return after
        index = bisect_left(returned, after)
        return after if index < len(returned) and returned[index].startswith(after) else _DEAD

    return step


def _step(state: str, effect: TextEffect) -> str | None:
    if effect.f == PUT:
        return effect.text
    if effect.f == APPEND:
        return state + effect.text
    return state if state == effect.text else None


def text_name(text: str) -> str:
    """How a text is written: in quotes, its end alone if it is long."""
    return f'"…{text[-MAX_SHOWN:]}"' if len(text) > MAX_SHOWN else f'"{text}"'


def _effect_name(effect: TextEffect) -> str:
    return f"{FS[effect.f]} {text_name(effect.text)}"


LINEARIZABLE_KEY_VALUE: Final = Property(
    name="linearizable-key-value",
    promise="Each put, append and get takes effect at one moment between its call and its end.",
    unit="gets",
    unknown="No get succeeded, the search for an order gave up at its bound, or events cannot be paired.",
    source="Herlihy and Wing (1990); Lowe (2017); the key-value model of Porcupine.",
    check=LinearizableKeyValue,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.LINEARIZABLE_KEY_VALUE,
)

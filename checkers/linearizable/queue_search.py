"""Queues that keep order, where dequeues of unknown outcome may have taken values: one order of all operations.

``queue_order`` decides values of which it is known when they were put in and taken out. A dequeue in doubt takes the
first value of the queue at some time, or nothing at all. So does a value with several enqueues have several pasts. For
the queues with either, all operations are put into one order by ``depth_search``, which may give up: ``unknown``.

* Enqueues of unknown outcome are left out if no dequeue returned their value: without such a value, and without the
  dequeue in doubt that took it, everything else is as well possible.
* A drain is a dequeue of each value that it returned, in this order, and then one that finds the queue empty. Each may
  be at any moment of the drain.
* A dequeue in doubt takes only values that have more enqueues than dequeues that returned them. Otherwise one of these
  dequeues would lack its value.
* A drain in doubt is as many dequeues in doubt as there are values that these may take. All of them may be late.

A state of the search is the values in the queue, and how many values each drain has taken. So the memory is bounded
by ``MAX_VALUES``, and the length of a queue by the enqueues that had begun and the dequeues that had ended at each
moment.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.depth_search import LIMIT, search_states
from nemesis.checkers.linearizable.elements import NONE, Listed, answers
from nemesis.checkers.linearizable.joining import concatenated
from nemesis.checkers.linearizable.object_operations import (
    FAIL,
    INFO,
    OK,
    UNSET,
    Operations,
    by_key,
)
from nemesis.checkers.linearizable.queue_states import DEQUEUE, DRAIN, ENQUEUE
from nemesis.checkers.linearizable.search import GaveUp

MAX_VALUES: Final = 50_000_000
"""Values in all states of the search of one queue, 8 bytes each."""
FIRST: Final = UNSET + 1
"""The value of a dequeue in doubt, which takes the first."""

Values = tuple[int, ...]


class QueueState(NamedTuple):
    values: Values
    taken: tuple[int, ...] = ()
    """How many values each drain has taken."""


class QueueEffect(NamedTuple):
    f: int
    value: int
    drain: int = NONE
    """The number of the drain of which this dequeue is a part."""
    position: int = 0
    """How many dequeues of the drain come before."""


@dataclass(frozen=True, slots=True)
class SearchedQueues:
    """What the searches of some queues show."""

    keys: Numbers
    """The keys of the queues that were searched to the end."""
    findings: tuple[Finding, ...]
    """Of queues without an order, or with too many to search."""


def searched_queues(
    name: str,
    operations: Operations,
    lists: Listed,
    decided_keys: set[str],
    max_values: int,
) -> SearchedQueues:
    """Search the queues that need it.

    ``lists``: what drains returned. ``decided_keys``: queues with other findings, which are not searched.
    """
    findings: list[Finding] = []
    keys: list[int] = []
    for of_key in by_key(operations):
        key = int(of_key.key[0])
        if phrases.key_name(key) not in decided_keys and _needs_search(of_key):
            misfit = _search(name, *_without_drains(of_key, lists), max_values)
            findings += [misfit] if misfit else []
            keys += [] if misfit and misfit.verdict is Verdict.UNKNOWN else [key]
    return SearchedQueues(np.array(keys, dtype=np.int64), tuple(findings))


def _needs_search(of_key: Operations) -> bool:
    values = of_key.value[(of_key.f == ENQUEUE) & (of_key.outcome != FAIL)]
    is_repeated = len(np.unique(values)) < len(values)
    return is_repeated or bool(np.any((of_key.f != ENQUEUE) & (of_key.outcome == INFO)))


def _without_drains(of_key: Operations, lists: Listed) -> tuple[Operations, Numbers, Numbers]:
    """Return the operations with dequeues instead of drains; drains that failed are left out.

    Also returns for each operation the number of its drain, or ``NONE``, and its position in that drain.
    """
    is_drain = of_key.f == DRAIN
    others = of_key.select(~is_drain)
    drains = np.flatnonzero(is_drain & (of_key.outcome == OK))
    by, values = answers(of_key, lists)
    number = np.searchsorted(drains, by)
    counts = np.bincount(number, minlength=len(drains))
    grouped = np.argsort(number, kind="stable")
    position = np.arange(len(by)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_drains = _dequeues(
        of_key,
        np.concatenate([by[grouped], drains]),
        np.concatenate([values[grouped], np.full(len(drains), UNSET, dtype=np.int64)]),
    )
    known = concatenated(Operations, [others, of_drains])
    in_doubt = np.flatnonzero(is_drain & (of_key.outcome == INFO))
    positions = np.repeat(in_doubt, _spare(known).total())
    of_doubt = _dequeues(of_key, positions, np.full(len(positions), UNSET, dtype=np.int64))
    before, behind = np.full(len(others), NONE), np.full(len(positions), NONE)
    return (
        concatenated(Operations, [known, of_doubt]),
        np.concatenate([before, number[grouped], np.arange(len(drains)), behind]),
        np.concatenate([np.zeros_like(before), position, counts, np.zeros_like(behind)]),
    )


def _dequeues(of_key: Operations, positions: Numbers, values: Numbers) -> Operations:
    """Return dequeues of these values at the times of the drains at these positions."""
    dequeues = of_key.select(positions)
    return replace(dequeues, f=np.full_like(dequeues.f, DEQUEUE), value=values)


def _search(
    name: str, of_key: Operations, drain: Numbers, position: Numbers, max_values: int
) -> Finding | None:
    is_kept = ~_is_unseen(of_key)
    kept, drain, position = of_key.select(is_kept), drain[is_kept], position[is_kept]
    drains = int(drain.max(initial=NONE)) + 1
    allowed = max_values // max(_longest(kept) + drains, 1)
    if len(kept) > allowed:
        return _too_many(name, kept)
    columns = (kept.f, kept.value, kept.outcome, drain, position)
    effects = [
        QueueEffect(f, FIRST if f == DEQUEUE and outcome == INFO else value, number, index)
        for f, value, outcome, number, index in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
    # A dequeue in doubt may change the queue, so it is not a look, although it states no value.
    is_look = (kept.f == DEQUEUE) & (kept.outcome == OK) & (kept.value == UNSET)
    step = partial(_step, _spare(kept))
    initial = QueueState((), (0,) * drains)
    result = search_states(kept, effects, is_look, initial, step, most=allowed)
    if result is None:
        return None
    if isinstance(result, GaveUp):
        return phrases.gave_up(name, kept, result, min(LIMIT, allowed))
    return phrases.misfit(name, kept, effects, result, _state_name, _effect_name)


def _is_unseen(of_key: Operations) -> Mask:
    """Whether an operation is an enqueue in doubt of a value that no dequeue returned."""
    returned = of_key.value[(of_key.f == DEQUEUE) & (of_key.outcome == OK)]
    in_doubt = (of_key.f == ENQUEUE) & (of_key.outcome == INFO)
    is_unseen: Mask = in_doubt & ~np.isin(of_key.value, returned)
    return is_unseen


def _longest(kept: Operations) -> int:
    """How many values the queue can have had at once in any order."""
    begun = kept.start[(kept.f == ENQUEUE) & (kept.outcome != FAIL)]
    is_taker = (kept.f == DEQUEUE) & (kept.outcome == OK) & (kept.value != UNSET)
    taken = np.sort(kept.finish[is_taker])
    begun = np.sort(begun)
    lengths = np.arange(1, len(begun) + 1) - np.searchsorted(taken, begun, side="left")
    return int(lengths.max(initial=0))


def _too_many(name: str, kept: Operations) -> Finding:
    key = phrases.key_name(int(kept.key[0]))
    sentence = (
        f"{key} is undecided: it has dequeues of unknown outcome or repeated values, and its "
        f"{len(kept):,} operations on {_longest(kept):,} values are too many to search for an order."
    )
    return finding(name, key, sentence, *phrases.rows(kept, 0), verdict=Verdict.UNKNOWN)


def _spare(kept: Operations) -> Counter[int]:
    """The values that dequeues in doubt may take: enqueues without the dequeues that returned their value."""
    enqueues = Counter(kept.value[(kept.f == ENQUEUE) & (kept.outcome != FAIL)].tolist())
    returned = Counter(kept.value[(kept.f == DEQUEUE) & (kept.outcome == OK)].tolist())
    return enqueues - returned


def _step(spare: Counter[int], state: QueueState, effect: QueueEffect) -> QueueState | None:
    values = state.values
    if effect.f == ENQUEUE:
        return state._replace(values=(*values, effect.value))
    if effect.drain != NONE and state.taken[effect.drain] != effect.position:
        return None
    if effect.value == UNSET:
        return None if values else state
    if not values:
        return None
    is_taken = values[0] in spare if effect.value == FIRST else values[0] == effect.value
    if not is_taken:
        return None
    taken = state.taken
    if effect.drain != NONE:
        taken = (*taken[: effect.drain], effect.position + 1, *taken[effect.drain + 1 :])
    return QueueState(values[1:], taken)


def _state_name(state: QueueState) -> str:
    values = state.values
    if not values:
        return "empty"
    shown = [str(value) for value in values[: phrases.MAX_LISTED]]
    more = ", …" if len(values) > phrases.MAX_LISTED else ""
    return f"[{', '.join(shown)}{more}]"


def _effect_name(effect: QueueEffect) -> str:
    if effect.f == ENQUEUE:
        return f"enqueue {effect.value}"
    return "dequeue" if effect.value == FIRST else f"dequeue {phrases.value_name(effect.value)}"

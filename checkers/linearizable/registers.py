"""linearizable-register, linearizable-cas-register: reads and writes of a register happen at one moment each.

Every operation that succeeded had its effect at one moment between its invocation and its completion, a read returns
what was written last before its moment, and a compare-and-set finds its first value then. The initial value is ``nil``,
unless another is stated or concluded (``nemesis.checkers.initial_values``). An
operation of unknown outcome had its effect once after its invocation, or never.
Writes alone always have an order, which proves nothing: reads and compare-and-sets that succeeded are the observations.
Without one the property is ``unknown``. Smallest break: write 1 is over; a read that begins afterwards returns nil.

How it is decided, key by key:

* values written once, no compare-and-set: by ``register_zones``, of all such keys at once, in the time of a sort;
* otherwise by ``order_walk``, if there are many operations, which proves that a key has an order; and for what is left
  by ``search``, which may give up at its bound: ``unknown``, and the sentence names the bound. Before, the
  writes of unknown outcome are left out whose value nobody is seen to have found: without them everything else is as
  well possible, and they are what makes a search long.

The two properties differ in the operations that they judge: only linearizable-cas-register knows compare-and-sets.

Limits: all operations fit into memory (50 bytes each). More than ``MAX_SEARCHED`` operations on keys that need a search
are not searched: ``unknown``. One finding for each key that was searched: what comes after it is not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.framework.asked import Asked
from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.initial_values import NIL, Changes, Observed, Suggestion, suggested
from nemesis.checkers.linearizable import phrases, zone_findings
from nemesis.checkers.linearizable.elements import Listed
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import (
    FAIL,
    INFO,
    OK,
    UNSET,
    WORTH_COMPILED,
    Operations,
    by_key,
    sequence_numbers,
)
from nemesis.checkers.linearizable.register_zones import Values, written_again
from nemesis.checkers.linearizable.search import LIMIT, Effect, Effects, GaveUp, search
from nemesis.history.sources import EventSource

FS: Final = ("read", "write", "cas")
READ, WRITE, CAS = range(len(FS))
MAX_SEARCHED: Final = 2_000_000


class LinearizableRegister(ObjectCheck):
    fs: ClassVar[tuple[str, ...]] = FS[:CAS]

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LINEARIZABLE_REGISTER,)

    def __init__(self, limit: int = LIMIT, initial: int | None = NIL) -> None:
        """``limit``: configurations that a search may try beyond ``possible.FREE`` for each operation. ``initial``:
        the initial value; None if it is not stated.
        """
        self.limit = limit
        self.initial = initial

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(initial=asked.initial)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        arguments = _Arguments.of(lists)
        initial, open_findings = self._initial(operations, arguments)
        values = Values.of(operations, initial)
        searched = _needs_search(operations, values)
        if searched.any():
            zoned = operations.select(~searched)
            zone_results = zone_findings.findings(self.name, zoned, Values.of(zoned, initial))
        else:
            zone_results = zone_findings.findings(self.name, operations, values)
        findings = [*zone_results.findings, *open_findings]
        findings += self._searched(operations.select(searched), arguments, initial)
        looked = (operations.outcome == OK) & (operations.f != WRITE)
        (decided,) = self.properties()
        return conclude(
            decided,
            checked=int(np.count_nonzero(looked)),
            findings=findings,
            finding_count=zone_results.count + len(findings) - len(zone_results.findings),
        )

    def _initial(self, operations: Operations, arguments: _Arguments) -> tuple[int, list[Finding]]:
        """The initial value, and the finding that it was concluded and not stated."""
        if self.initial is not None:
            return self.initial, []
        suggestion, position = _suggested(operations, arguments)
        if suggestion is None:
            return NIL, []
        proof = phrases.rows(operations, position)
        key = phrases.key_name(int(operations.key[position]))
        unknown = finding(self.name, key, suggestion.sentence, *proof, verdict=Verdict.UNKNOWN)
        return suggestion.value, [unknown]

    def _searched(self, searched: Operations, arguments: _Arguments, initial: int) -> list[Finding]:
        """The findings of the keys that need a search."""
        searched = _without_order(searched, arguments, initial)
        if not len(searched):
            return []
        if len(searched) > MAX_SEARCHED:
            sentence = (
                f"{len(searched):,} operations are of keys that need a search (a value is written twice, or there are "
                f"compare-and-sets); no more than {MAX_SEARCHED:,} are searched."
            )
            again = phrases.rows(searched, 0)
            return [finding(self.name, "the history", sentence, *again, verdict=Verdict.UNKNOWN)]
        results = [self._key(of_key, arguments, initial) for of_key in by_key(searched)]
        return [result for result in results if result is not None]

    def _key(self, of_key: Operations, arguments: _Arguments, initial: int) -> Finding | None:
        effects = arguments.effects(of_key)
        if None in effects:
            position = effects.index(None)
            key = phrases.key_name(int(of_key.key[position]))
            sentence = f"A compare-and-set of {key} does not state two values."
            return finding(
                self.name,
                key,
                sentence,
                *phrases.rows(of_key, position),
                verdict=Verdict.UNKNOWN,
            )
        kept = _matters(of_key, stated := [effect for effect in effects if effect is not None])
        of_key = of_key.select(kept)
        stated = [effect for effect, is_kept in zip(stated, kept.tolist(), strict=True) if is_kept]
        search_result = search(of_key, stated, initial, self.limit)
        if search_result is None:
            return None
        if isinstance(search_result, GaveUp):
            return phrases.gave_up(self.name, of_key, search_result, self.limit)
        return phrases.misfit(self.name, of_key, stated, search_result, phrases.value_name)


class LinearizableCasRegister(LinearizableRegister):
    fs = FS
    lists = (FS[CAS],)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LINEARIZABLE_CAS_REGISTER,)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The two values of compare-and-sets. Arrays of one length."""

    row: Numbers
    """The row of the event that states them, ascending."""
    old: Numbers
    new: Numbers

    @classmethod
    def of(cls, lists: Listed) -> _Arguments:
        rows, first, count = np.unique(lists.row, return_index=True, return_counts=True)
        two = first[count == 2]
        return cls(rows[count == 2], lists.value[two], lists.value[two + 1])

    def _positions(self, rows: Numbers) -> Numbers:
        """Where the values of these rows are; −1 for rows that state none."""
        positions = np.searchsorted(self.row, rows)
        is_known = np.append(self.row, UNSET)[positions] == rows
        return np.where(is_known, positions, -1)

    def stated(self, operations: Operations) -> tuple[Mask, Effects]:
        """Return whether each operation states its values, and what it does."""
        needs, gives = operations.value.copy(), operations.value.copy()
        is_cas = np.flatnonzero(operations.f == CAS)
        positions = self._positions(operations.invoked[is_cas])
        positions = np.where(
            positions < 0, self._positions(operations.completed[is_cas]), positions
        )
        is_stated = np.ones(len(operations), dtype=np.bool_)
        is_stated[is_cas] = positions >= 0
        needs[is_cas[positions >= 0]] = self.old[positions[positions >= 0]]
        gives[is_cas[positions >= 0]] = self.new[positions[positions >= 0]]
        return is_stated, Effects(needs, operations.f != WRITE, gives)

    def effects(self, operations: Operations) -> list[Effect | None]:
        """What each of them does; None for a compare-and-set that does not state two values."""
        is_stated, effects = self.stated(operations)
        return [
            Effect(FS[f], needs if f != WRITE else None, gives) if stated else None
            for f, stated, needs, gives in zip(
                operations.f.tolist(),
                is_stated.tolist(),
                effects.needs.tolist(),
                effects.gives.tolist(),
                strict=True,
            )
        ]


def _suggested(operations: Operations, arguments: _Arguments) -> tuple[Suggestion | None, int]:
    """The initial value that reads and compare-and-sets show, and the position of one that shows it."""
    number, (keys, _) = np.arange(len(operations)), sequence_numbers(operations.key)
    changes = np.flatnonzero(operations.f != READ)
    is_stated, effects = arguments.stated(operations)
    old, new = effects.needs, effects.gives
    reads = np.flatnonzero((operations.f != WRITE) & (operations.outcome == OK) & is_stated)
    suggestion = suggested(
        Observed(keys[reads], old[reads], operations.finish[reads], number[reads]),
        Changes(keys[changes], new[changes], operations.start[changes], number[changes]),
    )
    return suggestion, 0 if suggestion is None else int(reads[suggestion.position])


def _needs_search(operations: Operations, values: Values) -> Mask:
    """Whether each operation is of a key that zones cannot decide."""
    is_cas = operations.f == CAS
    again = written_again(operations, values)
    keys = np.union1d(operations.key[is_cas], operations.key[again])
    return np.isin(operations.key, keys) if len(keys) else np.zeros(len(operations), dtype=np.bool_)


def _without_order(searched: Operations, arguments: _Arguments, initial: int) -> Operations:
    """Leave out the keys that compiled code proves to have an order, if there are enough operations to compile it."""
    if len(searched) < WORTH_COMPILED or not has_compiler():
        return searched
    is_stated, effects = arguments.stated(searched)
    if not is_stated.all():
        return searched
    from nemesis.checkers.linearizable import order_walk

    return searched.select(~order_walk.ordered_keys(searched, effects, initial))


def _matters(operations: Operations, effects: list[Effect]) -> Mask:
    """Leaves out the writes of unknown outcome whose value no operation found."""
    is_done = (operations.outcome != FAIL) & ((operations.f != READ) | (operations.outcome == OK))
    needed = {effect.needs for effect, done in zip(effects, is_done.tolist(), strict=True) if done}
    is_found = np.array([effect.gives in needed for effect in effects], dtype=np.bool_)
    kept: Mask = (operations.outcome != INFO) | (operations.f == READ) | is_found
    return kept


LINEARIZABLE_REGISTER: Final = Property(
    name="linearizable-register",
    promise="Each operation takes effect at one moment between its call and its end.",
    unit="observations",
    unknown="No read succeeded, the search for an order gave up at its bound, or events cannot be paired.",
    source="Herlihy and Wing (1990); Gibbons and Korach (1997); Wing and Gong (1993).",
    check=LinearizableRegister,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.LINEARIZABLE_REGISTER,
)
LINEARIZABLE_CAS_REGISTER: Final = replace(
    LINEARIZABLE_REGISTER,
    name="linearizable-cas-register",
    unknown="No read or cas succeeded, the search for an order gave up at its bound, or events cannot be paired.",
    check=LinearizableCasRegister,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.LINEARIZABLE_CAS_REGISTER,
)

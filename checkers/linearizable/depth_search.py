"""Whether operations on one object can be put into an order, for objects whose states are not single numbers.

The search puts one operation after the other, in the order of their beginnings, and takes the last of them back where
it cannot go on (depth first). An operation may be next if no operation that is still to be put had ended before it
began. A state that is reached again with the same operations is not searched again. What never completed is put
nowhere unless a later operation needs it.

Proof of a misfit: the search ends when nothing is left to try. Each time it took back an operation, one that had ended
(the *blocking* one) fitted nowhere. The latest blocking operation was reached with all operations before it in an
order, and no order of those ends with it. So what ended before it has an order, and together with it has not.

Sources: Wing and Gong (1993); Lowe, "Testing for linearizability" (2017), whose memory of states is used; Porcupine
searches likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nemesis.checkers.framework.segment import Mask
from nemesis.checkers.linearizable.object_operations import OK, Operations
from nemesis.checkers.linearizable.search import GaveUp, Misfit, starts_and_ends

LIMIT: Final = 200_000
"""States that are tried beyond ``EACH`` for each beginning and end, before the search gives up."""
EACH: Final = 10
MAX_STATES: Final = 5
"""States that a misfit lists."""

Step = Callable[[Any, Any], Hashable | None]
"""Return the state after an effect; None if the effect cannot happen in that state."""


def search_states(
    operations: Operations,
    effects: Sequence[Hashable],
    is_look: Mask,
    initial: Hashable,
    step: Step,
    limit: int = LIMIT,
    exact_step: Step | None = None,
    most: int | None = None,
) -> Misfit | GaveUp | None:
    """Return where the operations of one object cannot go on, or None if they can be put into an order.

    ``effects`` has one for each operation; ``is_look``: whether it changes nothing. Operations that failed, and looks
    without an answer, count for nothing. ``step`` may give one state for several that allow the same. Then
    ``exact_step`` gives the states that a misfit names. ``most`` bounds the number of states for any
    number of operations.
    """
    entries = starts_and_ends(operations, is_look)
    is_in_doubt = (operations.outcome != OK).tolist()
    search = _Search.of(entries, effects, is_in_doubt)
    allowed = limit + EACH * len(entries)
    allowed = allowed if most is None else min(allowed, most)
    is_ordered = search.run(initial, step, allowed)
    if is_ordered:
        return None
    if is_ordered is None:
        return GaveUp(search.entries[max(search.blocking, 0)].position, search.placed())
    return search.misfit(is_look.tolist(), initial, exact_step or step)


@dataclass(slots=True)
class _Entry:
    """A beginning or an end in the list of what is still to be put."""

    position: int
    is_end: bool
    bit: int
    """Of the operation, by the order of beginnings."""
    previous: int = -1
    following: int = -1
    end: int = -1
    """Of a beginning: the entry of its end, −1 without one."""
    alike: int = -1
    """Of a beginning that never ends: the bit of the one before it with the same effect."""


@dataclass(slots=True)
class _Search:
    entries: list[_Entry]
    effects: Sequence[Hashable]
    required: int
    """How many operations have ended, and so have to be put."""
    blocking: int = -1
    """The latest end that could not be passed."""
    states: dict[Hashable, list[int]] = field(default_factory=dict)
    """States that were reached there, each with the beginnings of the operations that led to it."""

    @classmethod
    def of(
        cls,
        starts_and_ends: list[tuple[int, bool]],
        effects: Sequence[Hashable],
        is_in_doubt: list[bool],
    ) -> _Search:
        entries: list[_Entry] = []
        begun: dict[int, int] = {}
        last_alike: dict[Hashable, int] = {}
        for index, (position, is_end) in enumerate(starts_and_ends):
            if is_end:
                beginning = entries[begun[position]]
                beginning.end = index
                entries.append(_Entry(position, is_end, beginning.bit))
                continue
            entry = _Entry(position, is_end, len(begun))
            if is_in_doubt[position]:
                entry.alike = last_alike.get(effects[position], -1)
                last_alike[effects[position]] = entry.bit
            begun[position] = index
            entries.append(entry)
        head = _Entry(-1, is_end=False, bit=-1)
        entries.append(head)
        linked = [len(entries) - 1, *range(len(entries) - 1)]
        for before, after in zip(linked, [*linked[1:], -1], strict=True):
            entries[before].following = after
            if after >= 0:
                entries[after].previous = before
        required = sum(is_end for _, is_end in starts_and_ends)
        return cls(entries, effects, required)

    def run(self, initial: Hashable, step: Step, allowed: int) -> bool | None:
        """Return whether there is an order; None if ``allowed`` states did not suffice to tell."""
        entries, effects = self.entries, self.effects
        head = len(entries) - 1
        state: Any = initial
        base, done = 0, 0  # Operations below base are put, and those of base + i for each bit i.
        stack: list[tuple[int, Any, int, int]] = []
        known: set[tuple[int, int, Any]] = set()
        left = self.required
        current = entries[head].following
        while left:
            entry = entries[current] if current >= 0 else None
            if entry is not None and not entry.is_end:
                after = None
                alike = entry.alike
                if alike < base or done >> (alike - base) & 1:
                    after = step(state, effects[entry.position])
                if after is not None:
                    new_base, new_done = _with(base, done, entry.bit)
                    if (new_base, new_done, after) not in known:
                        known.add((new_base, new_done, after))
                        if len(known) > allowed:
                            return None
                        stack.append((current, state, base, done))
                        state, base, done = after, new_base, new_done
                        self._lift(current)
                        left -= entry.end >= 0
                        current = entries[head].following
                        continue
                current = entry.following
                continue
            if current > self.blocking:
                self.blocking, self.states = current, {}
            if current == self.blocking and len(self.states) < MAX_STATES:
                self.states.setdefault(state, [index for index, *_ in stack])
            if not stack:
                return False
            current, state, base, done = stack.pop()
            left += entries[current].end >= 0
            self._put_back(current)
            current = entries[current].following
        return True

    def _lift(self, index: int) -> None:
        """Take a beginning and its end out of the list."""
        entries = self.entries
        for number in (index, entries[index].end):
            if number >= 0:
                entry = entries[number]
                entries[entry.previous].following = entry.following
                if entry.following >= 0:
                    entries[entry.following].previous = entry.previous

    def _put_back(self, index: int) -> None:
        entries = self.entries
        for number in (entries[index].end, index):
            if number >= 0:
                entry = entries[number]
                entries[entry.previous].following = number
                if entry.following >= 0:
                    entries[entry.following].previous = number

    def placed(self) -> int:
        """How many operations had ended before the blocking one."""
        return sum(entry.is_end for entry in self.entries[: max(self.blocking, 0)])

    def misfit(self, is_look: list[bool], initial: Hashable, step: Step) -> Misfit:
        """Return the misfit that the latest blocking end proves."""
        before = self.entries[: self.blocking]
        ended = [entry.position for entry in before if entry.is_end]
        changes = [position for position in ended if not is_look[position]]
        over = {*ended, self.entries[self.blocking].position}
        begun = [entry.position for entry in before if not entry.is_end]
        paths = self.states.values()
        return Misfit(
            position=self.entries[self.blocking].position,
            states=tuple(dict.fromkeys(self._state(path, initial, step) for path in paths)),
            placed=len(ended),
            last_placed=changes[-1] if changes else None,
            open=tuple(position for position in begun if position not in over),
        )

    def _state(self, path: list[int], initial: Hashable, step: Step) -> Hashable:
        state: Any = initial
        for index in path:
            state = step(state, self.effects[self.entries[index].position])
        reached: Hashable = state
        return reached


def _with(base: int, done: int, bit: int) -> tuple[int, int]:
    """The operations that are put, with one more: all below a base, and bits above it."""
    done |= 1 << (bit - base)
    if done & 1:
        ones = (~done & (done + 1)).bit_length() - 1
        return base + ones, done >> ones
    return base, done

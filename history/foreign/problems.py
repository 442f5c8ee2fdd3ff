"""What is wrong with a history from elsewhere: a sentence for each kind of damage, with the numbers of its lines.

Damage that may have cost operations is kept apart: of a history that lacks some, what it does not say proves nothing.
Notes are no damage: they state how a file was read, and no verdict depends on them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

MAX_RANGES: Final = 8


class Damage(Enum):
    """What can be wrong: what is said of the lines, and whether operations may be missing because of it."""

    UNREADABLE = ("cannot be read as an operation", True)
    TORN = ("is cut off where the file ends", False)
    UNKNOWN_F = ("is of a function that this workload does not have", True)
    OTHER_F = ("is of a function that this workload does not judge: it is left out", False, True)
    WRONG_VALUE = ("has a value that its function cannot have", True)
    NO_INVOCATION = ("completes what its process had not invoked", True)
    STATUS = (
        "states another value than its invocation: that of the invocation counts",
        False,
        True,
    )
    DENIED = (
        "ends with ok and the result false: it counts as an operation of unknown outcome",
        False,
        True,
    )
    STILL_OPEN = (
        "invokes although its process had not completed what it invoked before",
        False,
    )
    KEYED = (
        "is of one of several objects ([key value]) where lines before are of the only one, or the reverse",
        True,
    )
    MISSING = (
        "follows indexes that are missing: the history is judged as a filtered one, which is complete",
        False,
        True,
    )
    CUT = (
        "follows indexes that are missing, and no other is: the beginning of the history was cut off",
        True,
    )
    REPEATED = ("says again what the line before of its process said; it is left out", False)
    SAME_INDEX = ("has the index of an earlier line", False)
    NOT_BY_INDEX = ("is not where its index belongs: the lines were sorted by index", False)
    NOT_BY_TIME = ("is earlier than the line before: the lines were sorted by time", False)
    TIME_FALLS = (
        "is earlier than the line with the index before: the order is that of the index",
        False,
        True,
    )
    TIMES_AGREE = (
        "is earlier than the line before: sorted by time, the same operations end before others begin",
        False,
        True,
    )
    SAME_TIME = (
        "begins at the time at which another process ends an operation: the two count as concurrent",
        False,
        True,
    )
    TURN_TOGETHER = (
        "begins at the time at which its process and another one end operations: an index would state their order",
        False,
    )
    NO_TIME = ("has no time: it was placed by its line", False)
    INDEX_ALONE = ("has no time: its index states its place", False, True)

    def __init__(self, sentence: str, may_cost_operations: bool, is_note: bool = False) -> None:
        self.sentence = sentence
        self.may_cost_operations = may_cost_operations
        self.is_note = is_note


_COSTLY_TOGETHER: Final = (
    (Damage.TORN, Damage.NOT_BY_INDEX),
    (Damage.TORN, Damage.NOT_BY_TIME),
    (Damage.TORN, Damage.TIMES_AGREE),
    (Damage.NO_TIME, Damage.NOT_BY_TIME),
)
"""What costs no operation, unless the file is not in order."""

_PROVES_LOSS: Final = frozenset(
    {Damage.UNREADABLE, Damage.TORN, Damage.NO_INVOCATION, Damage.STILL_OPEN}
)
"""With this damage beside them, missing indexes are lost lines: who filters a history keeps whole operations."""
LOSS: Final = "follows indexes that are missing: lines of the history were lost"
_LOST_LINES: Final = frozenset({Damage.UNREADABLE, Damage.TORN, Damage.MISSING, Damage.CUT})


@dataclass(slots=True)
class _Kind:
    lines: list[int]
    reason: str


@dataclass(slots=True)
class Problems:
    """The damage found so far."""

    _kinds: dict[Damage, _Kind] = field(default_factory=dict)
    _groups: dict[Damage, Counter[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """Notes about the whole file."""
    has_unread_change: bool = False
    """Whether an operation that changes an object, or may change it, does not state how."""
    statuses: dict[str, set[str]] = field(default_factory=dict)
    """By function, what completions stated in place of the values of their invocations, as ``repr`` writes it."""

    def note(self, damage: Damage, line: int, reason: str = "") -> None:
        """Keep a line of this kind; of the reasons only the first is told."""
        kind = self._kinds.setdefault(damage, _Kind([], reason))
        kind.lines.append(line)

    def count(self, damage: Damage) -> int:
        """Return how many lines of this kind there are."""
        return len(self._kinds[damage].lines) if damage in self._kinds else 0

    def note_group(self, damage: Damage, line: int, group: str) -> None:
        """Keep a line of this kind, counted with the others of its group."""
        self.note(damage, line)
        groups = self._groups.setdefault(damage, Counter())
        groups[group] += 1

    def may_lack_lines(self) -> bool:
        """Whether lines of the file may be missing or unreadable."""
        return not self._kinds.keys().isdisjoint(_LOST_LINES)

    def may_lack_operations(self, *, is_complete: bool = False) -> bool:
        """Whether any damage may have cost operations; ``is_complete``: no line of an operation is missing.

        In a file that is not in order its end is any place of the history, and neighbours do not say where a line
        belongs that has no time.
        """
        costly = {damage for damage in self._kinds if damage.may_cost_operations}
        costly |= {
            damage for damage, other in _COSTLY_TOGETHER if {damage, other} <= self._kinds.keys()
        }
        costly |= self._lost()
        if is_complete:
            costly -= {Damage.UNREADABLE, Damage.TORN}
        return bool(costly)

    def may_hide_changes(self) -> bool:
        """Whether an operation of the file changed an object, or may have, in a way that no check knows."""
        return self.has_unread_change or Damage.UNKNOWN_F in self._kinds

    def is_cut_off(self) -> bool:
        """Whether the history may have gone on after the last line that can be read."""
        return not self._kinds.keys().isdisjoint({Damage.TORN, Damage.UNREADABLE})

    def sentences(self) -> list[str]:
        """Return one sentence for each kind of damage, in the order of ``Damage``."""
        lost = self._lost()
        return [
            _sentence(LOSS if damage in lost else damage.sentence, self._kinds[damage])
            for damage in Damage
            if damage in self._kinds and (damage in lost or not damage.is_note)
        ]

    def notes(self) -> list[str]:
        """Return the sentences that no verdict depends on."""
        lost = self._lost()
        return [
            *self.remarks,
            *(
                _sentence(damage.sentence, self._kinds[damage], self._groups.get(damage))
                for damage in Damage
                if damage in self._kinds and damage.is_note and damage not in lost
            ),
        ]

    def _lost(self) -> set[Damage]:
        """Return the missing indexes, if other damage proves that lines were lost with them."""
        is_lost = not self._kinds.keys().isdisjoint(_PROVES_LOSS)
        return {Damage.MISSING} & self._kinds.keys() if is_lost else set()


def _sentence(sentence: str, kind: _Kind, groups: Counter[str] | None = None) -> str:
    lines = sorted(set(kind.lines))
    counts = "" if groups is None else ", ".join(f"{n} × {group}" for group, n in groups.items())
    reason = kind.reason or counts
    if len(lines) == 1:
        return f"line {lines[0]} {sentence}{f' ({reason})' if reason else ''}"
    first = f"; the first: {kind.reason}" if kind.reason else counts and f": {counts}"
    return f"each of the {len(lines)} lines {_ranges(lines)} {sentence}{first}"


def _ranges(lines: list[int]) -> str:
    """Return ascending numbers in few words: ``3, 7–9, 12 …``."""
    ranges: list[list[int]] = []
    for line in lines:
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    said = [str(a) if a == b else f"{a}–{b}" for a, b in ranges[:MAX_RANGES]]
    return ", ".join(said) + (" …" if len(ranges) > MAX_RANGES else "")

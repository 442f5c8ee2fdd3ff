"""Which completion belongs to which invocation: one process does one thing at a time.

A process that invokes again has left open what it had invoked before: nobody knows how that ended, or it does several
things at once, against the rule. So a completion belongs to the first of its function with whose value it agrees. Which
of several that asked for the same it was nobody knows: it began with the first of them, which makes it longer than it
was, perhaps, and never shorter. A completion of what was never invoked did happen
some time after the process's last completion: it gets an invocation there, the widest that is possible. A line that
says what the one before it of the process said is the same line once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs

from nemesis.history.foreign.edn import same
from nemesis.history.foreign.operations import INVOKE, OK, Operation
from nemesis.history.foreign.problems import Damage, Problems

MAX_OPEN: Final = 100
"""So many invocations of one process can be completed yet; what it invoked before them stays open."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An operation of a client from its invocation to its completion, if it has one."""

    invoke: Operation
    completion: Operation | None
    is_alone: bool = True
    """Whether its process did nothing else meanwhile."""


def without_repeats(operations: Iterable[Operation], problems: Problems) -> Iterator[Operation]:
    """Leave out lines that say what the one before of their process said. ``operations``: in order, times as stated."""
    last: dict[int | str, Operation] = {}
    for one in operations:
        before = last.get(one.process)
        if before is not None and one.says_the_same(before) and _is_one_line(one):
            problems.note(Damage.REPEATED, one.line)
            continue
        last[one.process] = one
        yield one


def _is_one_line(one: Operation) -> bool:
    """Whether two equal lines are one: nothing completes twice, but the same may be invoked again."""
    return one.is_of_client and not (one.is_invoke and one.index is None and one.time is None)


def pairs(operations: Iterable[Operation], problems: Problems) -> Iterator[Pair]:
    """Yield the clients' operations, each when it completes, those that are left open at last.

    ``operations``: of clients only, in order, all with their times.
    """
    processes: defaultdict[int | str, _Process] = defaultdict(_Process)
    for one in operations:
        process = processes[one.process]
        if one.is_invoke:
            if process.under_way:
                problems.note(Damage.STILL_OPEN, one.line)
            yield from process.invoke(one)
            continue
        place = process.place_of(one)
        if place is None:
            problems.note(Damage.NO_INVOCATION, one.line)
            yield Pair(_supposed(one, process.free_since), one, not process.under_way)
        else:
            yield process.under_way.pop(place).pair(one)
        process.free_since = one.time or 0
    for process in processes.values():
        for left in process.under_way:
            yield left.pair(None)


@dataclass(slots=True)
class _Open:
    """What a process has under way."""

    invocation: Operation
    since: int
    """When it was invoked, or, while others that ask for the same are under way, the first of them."""
    is_alone: bool = True
    """Whether its process had nothing else under way at any time of it."""

    def pair(self, completion: Operation | None) -> Pair:
        invocation = self.invocation
        if self.since != invocation.time:
            invocation = structs.replace(invocation, time=self.since)
        return Pair(invocation, completion, self.is_alone)


@dataclass(slots=True)
class _Process:
    under_way: list[_Open] = field(default_factory=list)
    """In the order of invocation."""
    free_since: int = 0

    def invoke(self, one: Operation) -> Iterator[Pair]:
        """Take note of an invocation; yields what is given up for it."""
        if len(self.under_way) == MAX_OPEN:
            yield self.under_way.pop(0).pair(None)
        since = one.time or 0
        if self.under_way:
            same = (other for other in self.under_way if _ask_the_same(other.invocation, one))
            since = min((other.since for other in same), default=since)
        self.under_way.append(_Open(one, since))
        if len(self.under_way) > 1:
            for other in self.under_way:
                other.is_alone = False

    def place_of(self, completion: Operation) -> int | None:
        """Return which invocation it completes; None if none, or one of several that ask for different things."""
        invoked = [one.invocation for one in self.under_way]
        if len(invoked) == 1 and completion.type != OK:
            return 0 if invoked[0].f == completion.f else None
        places = [
            place
            for place, one in enumerate(invoked)
            if one.f == completion.f and (completion.value is None or fits(one, completion))
        ]
        if len(places) < 2:
            return places[0] if places else None
        is_certain = all(_ask_the_same(invoked[place], invoked[places[0]]) for place in places)
        return places[0] if is_certain else None


def _ask_the_same(one: Operation, other: Operation) -> bool:
    return one.f == other.f and same(one.value, other.value)


def fits(invocation: Operation, completion: Operation) -> bool:
    """Whether a completion can be the answer to an invocation, by their values."""
    return _fits(invocation.value, completion.value)


def _fits(asked: Any, told: Any) -> bool:
    """What was asked for stands in the answer: as it was, filled in, or, of a record, behind its offset."""
    if asked is None or same(asked, told):
        return True
    if not isinstance(told, list | tuple):
        return isinstance(told, dict)
    if isinstance(asked, list | tuple) and len(asked) <= len(told):
        for one, other in zip(asked, told, strict=False):
            if not _fits(one, other):
                break
        else:
            return True
    return bool(told) and same(asked, told[-1])


def _supposed(completion: Operation, time: int) -> Operation:
    return Operation(
        line=completion.line,
        type=INVOKE,
        process=completion.process,
        f=completion.f,
        value=completion.value,
        time=time,
    )

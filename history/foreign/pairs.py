"""Which completion belongs to which invocation: one process does one thing at a time.

A process that invokes again has left open what it had invoked before; nobody knows how that ended. A completion of
what was never invoked did happen some time after the process's last completion: it gets an invocation there, the widest
that is possible. A line that says what the one before it of the process said is the same line once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from history.foreign.operations import INVOKE, Operation
from history.foreign.problems import Damage, Problems


@dataclass(frozen=True, slots=True)
class Pair:
    """An operation of a client from its invocation to its completion, if it has one."""

    invoke: Operation
    completion: Operation | None


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
    open_: dict[int | str, Operation] = {}
    free_since: dict[int | str, int] = {}
    for one in operations:
        process = one.process
        invoked = open_.pop(process, None)
        if one.is_invoke:
            open_[process] = one
            if invoked is not None:
                problems.note(Damage.STILL_OPEN, one.line)
                yield Pair(invoked, None)
            continue
        if invoked is not None and invoked.f != one.f:
            yield Pair(invoked, None)
            invoked = None
        if invoked is None:
            problems.note(Damage.NO_INVOCATION, one.line)
            invoked = _supposed(one, free_since.get(process, 0))
        free_since[process] = one.time or 0
        yield Pair(invoked, one)
    for left in open_.values():
        yield Pair(left, None)


def _supposed(completion: Operation, time: int) -> Operation:
    return Operation(
        line=completion.line,
        type=INVOKE,
        process=completion.process,
        f=completion.f,
        value=completion.value,
        time=time,
    )

"""Which completion belongs to which invocation: one process does one thing at a time.

A process that invokes again has left open what it had invoked before: nobody knows how that ended, or it does several
things at once, against the rule. So a completion belongs to the first of its function with whose value it agrees. If
several that asked for different things agree, it belongs to none, and began when the first open one did, or before.
Which of several that asked for the same it was nobody knows: it began with the first of them, which makes it longer
than it was, perhaps, and never shorter. A completion of what was never invoked did happen some time after the process's
last completion, or after the first that is open: it gets an invocation there, the widest that is possible. Where lines
are lost, the invocation can be one of them and stand anywhere before, and so can invocations that would show that the
process does several things at once: it begins with the history, and its process may have done other things meanwhile. A
line that says what the one before it of the process said is the same line once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import starmap
from typing import Any, Final

from msgspec import structs

from nemesis.history.foreign.edn import is_vector, same
from nemesis.history.foreign.operations import INFO, INVOKE, OK, Operation
from nemesis.history.foreign.problems import Damage, Problems

READ: Final = "read"
"""It may answer with the key that it was asked for, and what the key has (``subkeys``)."""
SEND: Final = "send"
MAX_OPEN: Final = 100
"""So many invocations of one process can be completed yet; what it invoked before them stays open."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An operation of a client from its invocation to its completion, if it has one."""

    invoke: Operation
    completion: Operation | None
    is_alone: bool = True
    """Whether its process did nothing else meanwhile."""


def without_repeats(
    operations: Iterable[Operation], problems: Problems, *, has_real_time: bool = True
) -> Iterator[Operation]:
    """Leave out lines that say what the one before of their process said. ``operations``: in order, times as stated.

    Without real time equal lines are one only if they state a time or an index.
    """
    last: dict[int | str, Operation] = {}
    for operation in operations:
        before = last.get(operation.process)
        is_stated = operation.index is not None or operation.time is not None
        is_same = before is not None and operation.says_the_same(before)
        if is_same and _is_one_line(operation) and (is_stated or has_real_time):
            problems.note(Damage.REPEATED, operation.line)
            continue
        last[operation.process] = operation
        yield operation


def _is_one_line(operation: Operation) -> bool:
    """Whether two equal lines are one: nothing completes twice, but the same may be invoked again."""
    return operation.is_of_client and not (
        operation.is_invoke and operation.index is None and operation.time is None
    )


def pairs(
    operations: Iterable[Operation],
    problems: Problems,
    *,
    is_complete: bool = False,
    may_be_silent: Callable[[str], bool] = lambda _: False,
) -> Iterator[Pair]:
    """Yield the clients' operations, each when it completes, those that are left open at last.

    ``operations``: of clients only, in order, all with their times. ``is_complete``: no line of an operation is
    missing. ``may_be_silent``: whether an ``ok`` of a function may leave its value to the invocation.
    """
    has_lost_lines = not is_complete and problems.may_lack_lines()
    processes: defaultdict[int | str, _Process] = defaultdict(_Process)
    for operation in operations:
        process = processes[operation.process]
        if operation.is_invoke:
            if process.under_way:
                problems.note(Damage.STILL_OPEN, operation.line)
            yield from process.invoke(operation)
            continue
        index = process.invocation_of(operation)
        if operation.type == OK and may_be_silent(operation.f):
            if index is None and not has_lost_lines:
                index = process.only_invocation_of(operation, is_complete=is_complete)
            if index is not None and process.is_status(index, operation):
                operation = _without_status(operation, problems)
        if index is None:
            problems.note(Damage.NO_INVOCATION, operation.line)
            since = 0 if has_lost_lines else process.earliest
            is_alone = not process.under_way and not has_lost_lines
            yield Pair(supposed(operation, since), operation, is_alone)
        else:
            yield process.under_way.pop(index).pair(operation)
        process.free_since = operation.time or 0
    for process in processes.values():
        for left in process.under_way:
            yield left.pair(None)


def without_key(value: Any) -> Any:
    """Return the value of ``[key value]``, and any other value as it is."""
    return value[1] if is_vector(value) and len(value) == 2 else value


def _without_status(completion: Operation, problems: Problems) -> Operation:
    """Return a completion without its status; ``false`` contradicts ``ok``, so the outcome is unknown then."""
    status = without_key(completion.value)
    if status is False:
        problems.note(Damage.DENIED, completion.line)
        return structs.replace(completion, value=None, type=INFO)
    problems.note(Damage.STATUS, completion.line)
    problems.statuses.setdefault(completion.f, set()).add(repr(status))
    return structs.replace(completion, value=None)


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
    given_up_since: int | None = None
    """When it began the first operation that was given up; None if none was."""

    @property
    def earliest(self) -> int:
        """When a completed operation of unknown invocation may have begun: it may be any that is open."""
        begun = [opened.since for opened in self.under_way]
        given_up = [] if self.given_up_since is None else [self.given_up_since]
        return min([self.free_since, *begun, *given_up])

    def invoke(self, operation: Operation) -> Iterator[Pair]:
        """Take note of an invocation; yields what is given up for it."""
        if len(self.under_way) == MAX_OPEN:
            given_up = self.under_way.pop(0)
            if self.given_up_since is None:
                self.given_up_since = given_up.since
            yield given_up.pair(None)
        since = operation.time or 0
        if self.under_way:
            same = (other for other in self.under_way if _ask_the_same(other.invocation, operation))
            since = min((other.since for other in same), default=since)
        self.under_way.append(_Open(operation, since))
        if len(self.under_way) > 1:
            for other in self.under_way:
                other.is_alone = False

    def invocation_of(self, completion: Operation) -> int | None:
        """Return the index of the completed invocation; None if no invocation fits, or if several different ones do."""
        invoked = [opened.invocation for opened in self.under_way]
        if len(invoked) == 1 and completion.type != OK:
            return 0 if invoked[0].f == completion.f else None
        fitting = [
            index
            for index, invocation in enumerate(invoked)
            if invocation.f == completion.f
            and (completion.value is None or fits(invocation, completion))
        ]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        is_certain = all(_ask_the_same(invoked[index], invoked[fitting[0]]) for index in fitting)
        return fitting[0] if is_certain else None

    def only_invocation_of(self, completion: Operation, *, is_complete: bool) -> int | None:
        """Return 0 if the one open invocation is completed although the answer has another value; else None.

        A value of the same kind may be the answer to an invocation whose line is missing, unless no line is.
        """
        if len(self.under_way) != 1 or self.under_way[0].invocation.f != completion.f:
            return None
        request = self.under_way[0].invocation.value
        is_other = is_complete or not _are_alike(request, completion.value)
        return 0 if request is not None and is_other else None

    def is_status(self, index: int, completion: Operation) -> bool:
        """Whether a completion states another value than the request, such as ``true`` or ``"OK"``."""
        request, answer = self.under_way[index].invocation.value, completion.value
        if _denies(request, answer):
            return True
        if request is None or answer is None or same(request, answer):
            return False
        is_map = isinstance(answer, dict) and not isinstance(request, dict)
        return is_map or not fits(self.under_way[index].invocation, completion)


def _denies(request: Any, answer: Any) -> bool:
    """Whether the answer to a request without a value, of one object or of one of several, is ``false``."""
    is_keyed = all(is_vector(value) and len(value) == 2 for value in (request, answer))
    is_same = is_keyed and same(request[0], answer[0])
    asked, answered = (request[1], answer[1]) if is_same else (request, answer)
    return asked is None and answered is False


def _are_alike(request: Any, answer: Any) -> bool:
    """Whether two values are of one kind; of a key and its value, that of the value counts."""
    if is_vector(request) and is_vector(answer):
        is_keyed = len(request) == len(answer) == 2 and same(request[0], answer[0])
        return not is_keyed or _are_alike(request[1], answer[1])
    return _kind(request) is _kind(answer)


def _kind(value: Any) -> type:
    if is_vector(value):
        return list
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float if is_number else type(value)


def _ask_the_same(operation: Operation, other: Operation) -> bool:
    return operation.f == other.f and same(operation.value, other.value)


def fits(invocation: Operation, completion: Operation) -> bool:
    """Whether a completion can be the answer to an invocation of the same function, by their values."""
    request, answer = invocation.value, completion.value
    is_key = invocation.f == READ and is_vector(answer) and len(answer) == 2
    if is_key and is_vector(answer[1]) and same(request, answer[0]):
        return True
    return _fits(request, answer)


def _fits(request: Any, answer: Any) -> bool:
    """Whether the answer contains the request: unchanged, filled in, or as a record of which the offset is stated."""
    if request is None or same(request, answer):
        return True
    if not is_vector(answer):
        return isinstance(answer, dict)
    if not is_vector(request) or len(request) > len(answer):
        return False
    if _is_send(request) and _is_send(answer) and _is_stored(request[2], answer[2]):
        return _fits(request[1], answer[1])
    return all(starmap(_fits, zip(request, answer, strict=False)))


def _is_send(micro: Sequence[Any]) -> bool:
    """Whether a vector is a micro-operation of the workload kafka that appends a record."""
    return len(micro) == 3 and micro[0] == SEND


def _is_stored(value: Any, record: Any) -> bool:
    """Whether a record is ``[offset value]``."""
    return is_vector(record) and len(record) == 2 and same(value, record[1])


def supposed(completion: Operation, time: int) -> Operation:
    """Return an invocation of a completion whose own is not in the file."""
    return Operation(
        line=completion.line,
        type=INVOKE,
        process=completion.process,
        f=completion.f,
        value=completion.value,
        time=time,
    )

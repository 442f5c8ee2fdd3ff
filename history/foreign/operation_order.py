"""The order of a history's operations, and a time for each that says the same.

A history is a sequence: its order is that of ``index`` where all operations have one, else that of ``time``, where one
that has none stays behind the line before it, else that of the lines. Where two of these disagree, that is damage,
unless they agree about which operations ended before which others began: no check asks for more.
Every operation gets a time of its own: sorting by time restores the order. So times that are equal, missing or falling
move by the nanoseconds that this takes. Where the order is that of time, equal times do not show that an operation
ended before one of another process began, so the two overlap, as in Porcupine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from nemesis.history.foreign.operations import Operation
from nemesis.history.foreign.problems import Damage, Problems

LINE_NS: Final = 2**20
"""From line to line where no operation has a time: the operations of a line have times of their own."""


def in_order(operations: Sequence[Operation], problems: Problems) -> list[Operation]:
    """Return the operations in order; notes what disagrees."""
    untimed = [operation for operation in operations if operation.time is None]
    is_by_index = all(operation.index is not None for operation in operations)
    if len(untimed) < len(operations):
        for operation in untimed:
            problems.note(Damage.INDEX_ALONE if is_by_index else Damage.NO_TIME, operation.line)
    if is_by_index:
        indexes = [operation.index or 0 for operation in operations]
        placed = _sorted(operations, indexes, Damage.NOT_BY_INDEX, problems)
        for before, after in pairwise(placed):
            if before.index == after.index and not after.says_the_same(before):
                problems.note(Damage.SAME_INDEX, after.line)
            if after.time is not None and after.time < (before.time or 0):
                problems.note(Damage.TIME_FALLS, after.line)
        return placed
    if len(untimed) == len(operations):
        return list(operations)
    times = _times(operations)
    is_same = not untimed and _ends_before_the_same(operations, times)
    return _sorted(
        operations, times, Damage.TIMES_AGREE if is_same else Damage.NOT_BY_TIME, problems
    )


def _ends_before_the_same(operations: Sequence[Operation], times: list[int]) -> bool:
    """Whether lines and times agree about the order of each invocation and each completion, and of each process."""
    ranks = [0] * len(times)
    for rank, position in enumerate(sorted(range(len(times)), key=times.__getitem__)):
        ranks[position] = rank
    begun, ended = -1, -1
    of_process: dict[int | str, int] = {}
    for operation, rank in zip(operations, ranks, strict=True):
        if not operation.is_of_client:
            continue
        if rank < of_process.get(operation.process, -1):
            return False
        of_process[operation.process] = rank
        if operation.is_invoke:
            begun = max(begun, rank)
        else:
            ended = max(ended, rank)
        if rank < (ended if operation.is_invoke else begun):
            return False
    return True


def _times(operations: Sequence[Operation]) -> list[int]:
    """The time of each; of those that have none, that of the line before."""
    times: list[int] = []
    for operation in operations:
        times.append(operation.time if operation.time is not None else times[-1] if times else 0)
    return times


def give_times(operations: Sequence[Operation], problems: Problems) -> bool:
    """Set the times of operations that are in order, each different; notes equal times that leave an order open.

    Return whether any had a time. Without one, the time of an operation states its line: see ``line_at``.
    """
    is_timed = any(operation.time is not None for operation in operations)
    is_by_time = is_timed and any(operation.index is None for operation in operations)
    now = -1
    for group in _groups_of_a_time(operations) if is_by_time else [operations]:
        for operation in _placed(group, problems) if is_by_time else group:
            stated = operation.time if is_timed else operation.line * LINE_NS
            now = now + 1 if stated is None else max(now + 1, stated)
            operation.time = now
    return is_timed


def _groups_of_a_time(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Yield operations in a row that have the same time; one without a time is of the group before it."""
    group: list[Operation] = []
    time = None
    for operation in operations:
        if group and operation.time not in (None, time):
            yield group
            group = []
        time = time if operation.time is None else operation.time
        group.append(operation)
    yield group


def _placed(group: Sequence[Operation], problems: Problems) -> Sequence[Operation]:
    """Return operations of one time so that none ends before one of another process begins.

    If one process turns, which means that it ends an operation and begins the next, the others begin before that and
    end after it. If several processes turn, they begin before they end, and the order of each is lost.
    """
    is_open = False
    ended: set[int | str] = set()
    turning: set[int | str] = set()
    for operation in (each for each in group if each.is_of_client):
        if not operation.is_invoke:
            ended.add(operation.process)
            continue
        if ended - {operation.process}:
            is_open = True
            problems.note(Damage.SAME_TIME, operation.line)
        if operation.process in ended:
            turning.add(operation.process)
    if not is_open:
        return group
    if len(turning) > 1:
        for operation in group:
            if operation.is_invoke and operation.process in turning:
                problems.note(Damage.TURN_TOGETHER, operation.line)
        turning.clear()

    def rank(operation: Operation) -> int:
        if operation.process in turning:
            return 1
        return 2 if operation.is_of_client and not operation.is_invoke else 0

    return sorted(group, key=rank)


def line_at(time: int) -> int:
    """Return the line whose operations were given a time, in a history without times."""
    return time // LINE_NS


def _sorted(
    operations: Sequence[Operation], keys: list[int], damage: Damage, problems: Problems
) -> list[Operation]:
    """Sort, stable; lines that are behind one that belongs behind them are damaged."""
    highest = -1
    is_sorted = True
    for operation, key in zip(operations, keys, strict=True):
        if key < highest:
            problems.note(damage, operation.line)
            is_sorted = False
        highest = max(highest, key)
    if is_sorted:
        return list(operations)
    permutation = sorted(range(len(keys)), key=keys.__getitem__)
    return [operations[position] for position in permutation]

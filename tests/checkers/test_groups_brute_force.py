"""Committed offsets, judged by trying everything that correct coordinators may do.

The model is one partition of committed offsets with two replicas. The current leader appends commits, and what is
committed in the log survives each election; what is not may be cut. A broker answers reads from its memory: what it has
loaded, and then what was committed while it led. A former leader that does not know of its successor answers reads and
has no commit acknowledged. A history is *possible* if some sequence of elections, appends and answers gives it.

The property must acquit each possible history, and convict each other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import history
from nemesis.checkers.breaks.groups import commit, fetched
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "offsets-read-as-committed"
BROKERS = (1, 2)
MOST_ELECTIONS = 4
NOTHING = -1


class Operation(NamedTuple):
    """A commit, whose number is its index, or a read of a commit's number; it is under way from began to ended."""

    is_read: bool
    node: int
    number: int
    outcome: str
    began: int
    ended: int


class Known(NamedTuple):
    """What a broker has in memory: the last commit that counts, and where the log has it."""

    position: int = -1
    number: int = NOTHING


class State(NamedTuple):
    leader: int
    elections: int
    log: tuple[tuple[int, bool], ...]
    """Commits, and whether the present leader appended each."""
    mark: int
    known: tuple[Known, Known]
    acknowledged: frozenset[int]
    read: frozenset[int]
    """The indices of the reads that were answered."""


def is_possible(operations: tuple[Operation, ...]) -> bool:
    """Whether correct coordinators can give these answers."""
    ends = sorted({time for item in operations for time in (item.began, item.ended)})

    @cache
    def explains(state: State, position: int) -> bool:
        if position == len(ends):
            return True
        time = ends[position]
        if _holds(operations, state, time) and explains(state, position + 1):
            return True
        return any(explains(after, position) for after in _moves(operations, state, time))

    first = State(1, 0, (), 0, (Known(), Known()), frozenset(), frozenset())
    return explains(first, 0)


def _holds(operations: tuple[Operation, ...], state: State, time: int) -> bool:
    """Whether what ends now was answered before."""
    for index, item in enumerate(operations):
        if item.ended != time or item.outcome != "ok":
            continue
        if item.is_read and index not in state.read:
            return False
        if not item.is_read and item.number not in state.acknowledged:
            return False
    return True


def _moves(operations: tuple[Operation, ...], state: State, time: int) -> Iterator[State]:
    """Return what may happen before this time."""
    logged = {number for number, _ in state.log}
    for index, item in enumerate(operations):
        if item.began >= time:
            continue
        is_under_way = time <= item.ended
        has_answer = is_under_way and _memory(state, item.node) == item.number
        if item.is_read and has_answer and index not in state.read:
            yield state._replace(read=state.read | {index})
        may_be_appended = item.outcome == "info" or (item.outcome == "ok" and is_under_way)
        is_new = not item.is_read and item.number not in logged
        if is_new and may_be_appended and item.node == state.leader:
            yield state._replace(log=(*state.log, (item.number, True)))
    if state.mark < len(state.log):
        yield _advanced(state)
    if state.elections < MOST_ELECTIONS:
        yield from _elected(state)


def _memory(state: State, node: int) -> int:
    return state.known[BROKERS.index(node)].number


def _advanced(state: State) -> State:
    number, is_own = state.log[state.mark]
    known = list(state.known)
    leader = BROKERS.index(state.leader)
    if state.mark > known[leader].position:
        known[leader] = Known(state.mark, number)
    acknowledged = state.acknowledged | {number} if is_own else state.acknowledged
    return state._replace(
        mark=state.mark + 1, known=(known[0], known[1]), acknowledged=acknowledged
    )


def _elected(state: State) -> Iterator[State]:
    for leader in BROKERS:
        for end in range(state.mark, len(state.log) + 1):
            log = tuple((number, False) for number, _ in state.log[:end])
            known = list(state.known)
            known[BROKERS.index(leader)] = Known(end - 1, log[-1][0]) if log else Known()
            yield state._replace(
                leader=leader,
                elections=state.elections + 1,
                log=log,
                known=(known[0], known[1]),
            )


@st.composite
def histories(draw: st.DrawFn) -> tuple[Operation, ...]:
    """Up to four commits and three reads; each is answered at a time of its own."""
    commits = draw(st.integers(1, 4))
    reads = draw(st.integers(1, 3))
    count = commits + reads
    times = draw(st.permutations(range(2 * count)))
    operations = []
    for index in range(count):
        began, ended = sorted(times[2 * index : 2 * index + 2])
        is_read = index >= commits
        operations.append(
            Operation(
                is_read,
                draw(st.sampled_from(BROKERS)),
                draw(st.integers(NOTHING, commits - 1)) if is_read else index,
                "ok" if is_read else draw(st.sampled_from(("ok", "ok", "info", "fail"))),
                began,
                ended,
            )
        )
    return tuple(operations)


def events(operations: tuple[Operation, ...]) -> tuple[Event, ...]:
    """Each operation belongs to a member of its own."""
    parts: list[list[Event]] = []
    for index, item in enumerate(operations):
        shared: dict[str, Any] = {"member": str(index), "taking": item.ended - item.began}
        if item.is_read:
            parts.append(fetched(item.began, item.node, item.number, **shared))
        else:
            parts.append(commit(item.began, item.node, 1, item.number, kind=item.outcome, **shared))
    return history(*parts)


@given(histories())
def test_exactly_what_correct_coordinators_cannot_answer_is_convicted(
    operations: tuple[Operation, ...],
) -> None:
    result = only(CHECKERS[NAME].check(), events(operations), NAME)
    assert (result.verdict is not Verdict.INVALID) == is_possible(operations), result.findings

"""What is possible after operations of which some are in doubt, compared with trying out everything."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.possible import Possible

Happened = tuple[str, int, int]
"""("invoke" or an outcome, operation, effect)"""


def after(state: int, effect: int) -> frozenset[int]:
    """Effect n > 0 leads from n − 1 to n, effect 0 leads from anywhere to 0."""
    if effect == 0:
        return frozenset({0})
    return frozenset({effect} if state == effect - 1 else ())


def possible_after(events: list[Happened], *initial: int) -> Possible[int, int]:
    possible = Possible(initial or (0,), after)
    for label, operation, effect in events:
        if label == "invoke":
            possible.invoked(operation, effect)
        elif label == "ok":
            possible.succeeded(operation)
        elif label == "fail":
            possible.failed(operation)
        else:
            possible.in_doubt(operation)
    return possible


def test_what_succeeded_has_happened() -> None:
    assert possible_after([("invoke", 1, 1), ("ok", 1, 1)]).states() == {1}


def test_what_failed_has_not() -> None:
    assert possible_after([("invoke", 1, 1), ("fail", 1, 1)]).states() == {0}


def test_what_is_in_doubt_or_under_way_may_have_happened() -> None:
    assert possible_after([("invoke", 1, 1), ("info", 1, 1)]).states() == {0, 1}
    assert possible_after([("invoke", 1, 1)]).states() == {0, 1}


def test_what_is_in_doubt_may_still_happen_after_everything_else() -> None:
    events = [("invoke", 1, 0), ("info", 1, 0), ("invoke", 2, 1), ("ok", 2, 1)]
    assert possible_after(events).states() == {0, 1}


def test_a_success_tells_that_another_had_happened_before() -> None:
    events = [("invoke", 1, 1), ("info", 1, 1), ("invoke", 2, 2), ("ok", 2, 2)]
    assert possible_after(events).states() == {2}


def test_operations_that_meet_may_happen_in_either_order() -> None:
    events = [("invoke", 1, 1), ("invoke", 2, 0), ("ok", 1, 1), ("ok", 2, 0)]
    assert possible_after(events).states() == {0, 1}
    assert possible_after([events[0], events[2], events[1], events[3]]).states() == {0}


def test_a_success_that_cannot_be_is_told() -> None:
    possible = possible_after([("invoke", 1, 2)])
    assert not possible.succeeded(1)
    assert possible.states() == {0}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Happened], int]:
    """A true history of few operations, and the state that it led to: effects happen where they can."""
    state, events = 0, []
    under_way: list[tuple[int, int, bool]] = []
    late: list[int] = []
    for operation in range(draw(st.integers(1, 7))):
        effect = draw(st.integers(0, 3))
        under_way.append((operation, effect, False))
        events.append(("invoke", operation, effect))
        while draw(st.booleans()) and under_way:
            item, label, _ = under_way.pop(draw(st.integers(0, len(under_way) - 1)))
            can = after(state, label)
            outcome = draw(st.sampled_from(["ok", "info", "never", "late"] if can else ["fail"]))
            if outcome in ("ok", "info"):
                (state,) = can
            if outcome == "late":
                late.append(label)
            name = outcome if outcome in ("ok", "fail") else "info"
            events.append((name, item, label))
        if draw(st.booleans()) and late:
            for result in after(state, late.pop()):
                state = result
    return events, state


@given(histories())
def test_what_is_true_is_possible(history: tuple[list[Happened], int]) -> None:
    events, state = history
    assert state in possible_after(events).states()


@given(histories())
def test_without_doubt_it_is_what_some_order_leads_to(
    history: tuple[list[Happened], int],
) -> None:
    """Brute force: of all orders that agree with who was over before whom, those in which every effect can happen."""
    events = [event for event in history[0] if ("info", *event[1:]) not in history[0]]
    ended = {operation for label, operation, _ in events if label in ("ok", "fail")}
    events = [event for event in events if event[1] in ended]
    done = {operation: effect for label, operation, effect in events if label == "ok"}
    first = {
        operation: index for index, (label, operation, _) in enumerate(events) if label == "invoke"
    }
    last = {
        operation: index for index, (label, operation, _) in enumerate(events) if label != "invoke"
    }
    ends = set()
    for permutation in permutations(done):
        pairs = [(a, b) for index, a in enumerate(permutation) for b in permutation[index + 1 :]]
        if any(last[b] < first[a] for a, b in pairs):
            continue
        states = {0}
        for operation in permutation:
            states = {result for state in states for result in after(state, done[operation])}
        ends |= states
    if ends:
        assert possible_after(events).states() == ends

"""Which states a thing can be in, after operations on it of which some are not known to have happened.

A *state* is whatever the caller's ``apply`` understands: given a state and an effect it returns the states that may
come of it, none if the effect cannot happen there. An operation takes effect at one moment between its invocation and
its completion; one that failed never does; one whose outcome is unknown may do so at any later time, so its effect is
*loose* from then on. The idea is that of linearizability checkers: keep every pair of a state and the set of operations
that have not taken effect yet. It stays small, for only operations that are under way at once multiply it.

Limit: a loose effect may come about more than once here, though an operation has it once. That allows more, never less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Effect = TypeVar("Effect", bound=Hashable)
Operation = Hashable


class Possible(Generic[State, Effect]):
    """The states of one thing. Operations are named by the caller; tell of them in the order of their events."""

    def __init__(
        self,
        initial: Iterable[State],
        apply: Callable[[State, Effect], Collection[State]],
        *,
        loose: Iterable[Effect] = (),
    ) -> None:
        """``loose`` effects may come about at any time without anybody's operation."""
        self._apply = apply
        self._loose = dict.fromkeys(loose)
        self._pending: dict[Operation, Effect] = {}
        self._reached: dict[tuple[State, frozenset[Operation]], None] = {
            (state, frozenset()): None for state in initial
        }

    def is_pending(self, operation: Operation) -> bool:
        """Whether it was invoked and is not over."""
        return operation in self._pending

    def invoked(self, operation: Operation, effect: Effect) -> None:
        self._pending[operation] = effect
        self._reached = {(state, todo | {operation}): None for state, todo in self._reached}

    def succeeded(self, operation: Operation) -> bool:
        """Return whether that is possible at all; if it is not, what is known is as if it had not been said."""
        closed = self._closed()
        kept = {(state, todo): None for state, todo in closed if operation not in todo}
        self._reached = kept or {(state, todo - {operation}): None for state, todo in closed}
        del self._pending[operation]
        return bool(kept)

    def failed(self, operation: Operation) -> None:
        """It certainly had no effect. Elsewhere it might have had one, so what others said may rule that out."""
        kept = {
            (state, todo - {operation}): None for state, todo in self._reached if operation in todo
        }
        self._reached = kept or self._reached
        del self._pending[operation]

    def in_doubt(self, operation: Operation) -> None:
        """Nobody knows whether it had, or will have, its effect."""
        self._loose[self._pending.pop(operation)] = None
        self._reached = {(state, todo - {operation}): None for state, todo in self._reached}

    def states(self) -> frozenset[State]:
        """The states that are possible now. What is still pending may have happened or not."""
        return frozenset(state for state, _ in self._closed())

    def _closed(self) -> dict[tuple[State, frozenset[Operation]], None]:
        """All that can be reached by what is pending or loose."""
        found = dict(self._reached)
        todo = list(found)
        while todo:
            state, pending = todo.pop()
            steps = [(self._pending[one], pending - {one}) for one in pending]
            steps += [(effect, pending) for effect in self._loose]
            for effect, left in steps:
                for after in self._apply(state, effect):
                    if (after, left) not in found:
                        found[after, left] = None
                        todo.append((after, left))
        return found

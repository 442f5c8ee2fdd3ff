"""Which states a thing can be in, after operations on it of which some are not known to have happened.

A *state* is whatever the caller's ``apply`` understands: given a state and an effect it returns the states that may
come of it, none if the effect cannot happen there. An operation takes effect at one moment between its invocation and
its completion; one that failed never does; one whose outcome is unknown may do so at any later time.

The idea is that of linearizability checkers (Wing and Gong 1993; Lowe 2017): keep every *configuration*,
a state with the operations under way that have had their effect, and let an operation have its effect only when one
that completes needs it. Three things keep them few:

* of two configurations that differ only in operations that need never happen, the one that has used fewer of them can
  do all that the other can;
* of operations that need never happen and are alike the first goes first;
* an operation that changes no state, wherever it is allowed, happens as soon as it can.

Operations in doubt are told in one of two ways. ``invoked(..., is_certain=False)`` is exact: at most once, at any later
time. ``in_doubt`` comes when the outcome does, and makes the effect *loose*: it may come about any number of times,
which allows more, never less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from functools import reduce
from operator import and_
from typing import Final, Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Effect = TypeVar("Effect", bound=Hashable)
Operation = Hashable
Useful = Callable[[Collection[Effect], Collection[Effect]], Collection[Effect]]

FREE: Final = 100
"""So many configurations may be tried for each operation: the search of a long history takes longer."""


class TooManyConfigurations(Exception):
    """The bound was reached: what is possible is not known. No fault of the history; the caller says so."""


class Possible(Generic[State, Effect]):
    """The states of one thing. Operations are named by the caller; tell of them in the order of their events."""

    def __init__(
        self,
        initial: Iterable[State],
        apply: Callable[[State, Effect], Collection[State]],
        *,
        loose: Iterable[Effect] = (),
        useful: Useful[Effect] | None = None,
        limit: int | None = None,
    ) -> None:
        """``loose`` effects may come about at any time without anybody's operation. ``limit`` bounds how many
        configurations are tried beyond ``FREE`` for each operation that succeeds; past it ``succeeded`` and ``states``
        raise TooManyConfigurations. ``useful`` tells which of some effects in doubt (first) can help others that are
        under way (second) to come about, directly or by helping one another; without it all are tried.
        """
        self._apply = apply
        self._loose = dict.fromkeys(loose)
        self._useful = useful
        self._limit = limit
        self._tried = 0
        self._bits: dict[Operation, int] = {}
        self._required: dict[int, Effect] = {}
        """Effects of the operations that are under way, by the bit that stands for each in a configuration."""
        self._settling: dict[int, Effect] = {}
        """Those of them that change no state."""
        self._optional: dict[Effect, list[int]] = {}
        """The bits of operations that need never happen, in the order of their invocations."""
        self._optional_bits = 0
        self._free: list[int] = []
        self._used_bits = 0
        self._reached: dict[tuple[State, int], None] = {(state, 0): None for state in initial}

    def is_pending(self, operation: Operation) -> bool:
        """Whether it was invoked and is not over."""
        return operation in self._bits

    def invoked(
        self,
        operation: Operation,
        effect: Effect,
        *,
        is_certain: bool = True,
        changes_state: bool = True,
    ) -> None:
        """``is_certain``: its completion will be told; otherwise nothing more is, and it happens once or never.
        ``changes_state``: false only for an effect that leads from a state to that state or nowhere.
        """
        bit = self._new_bit()
        if not is_certain:
            self._optional.setdefault(effect, []).append(bit)
            self._optional_bits |= bit
            return
        self._bits[operation] = bit
        self._required[bit] = effect
        if not changes_state:
            self._settling[bit] = effect
            self._reached = {self._settled(*configuration): None for configuration in self._reached}

    def succeeded(self, operation: Operation) -> bool:
        """Return whether that is possible at all; if it is not, what is known is as if it had not been said."""
        bit = self._bits[operation]
        kept = {(state, done): None for state, done in self._reached if done & bit}
        others = {
            configuration: None for configuration in self._reached if configuration not in kept
        }
        kept.update(self._explored(others, bit, self._helpful())[1])
        reached = self._undominated(kept) if kept else list(self._reached)
        self._forget(operation, self._without_used_up(reached))
        self._tried = max(0, self._tried - FREE)
        return bool(kept)

    def failed(self, operation: Operation) -> None:
        """It certainly had no effect. Elsewhere it might have had one, so what others said may rule that out."""
        bit = self._bits[operation]
        kept = {(state, done): None for state, done in self._reached if not done & bit}
        self._forget(operation, kept or self._reached)

    def in_doubt(self, operation: Operation) -> None:
        """Nobody knows whether it had, or will have, its effect."""
        self._loose[self._required[self._bits[operation]]] = None
        self._forget(operation, self._reached)

    def states(self) -> frozenset[State]:
        """The states that are possible now. What is still pending may have happened or not."""
        return frozenset(state for state, _ in self._explored(self._reached, 0, self._optional)[0])

    def _new_bit(self) -> int:
        if self._free:
            return self._free.pop()
        self._used_bits += 1
        return 1 << (self._used_bits - 1)

    def _forget(self, operation: Operation, reached: Iterable[tuple[State, int]]) -> None:
        """It is over: its bit stands for nothing any more."""
        bit = self._bits.pop(operation)
        del self._required[bit]
        self._settling.pop(bit, None)
        self._free.append(bit)
        self._reached = {(state, done & ~bit): None for state, done in reached}

    def _without_used_up(self, reached: list[tuple[State, int]]) -> list[tuple[State, int]]:
        """The configurations without the operations that need never happen, yet have in all of them."""
        used_up = reduce(and_, (done for _, done in reached)) & self._optional_bits
        if not used_up:
            return reached
        for effect, bits in list(self._optional.items()):
            self._optional[effect] = [bit for bit in bits if not bit & used_up]
            self._free += [bit for bit in bits if bit & used_up]
            if not self._optional[effect]:
                del self._optional[effect]
        self._optional_bits &= ~used_up
        return [(state, done & ~used_up) for state, done in reached]

    def _helpful(self) -> Collection[Effect]:
        """The effects in doubt that are worth trying."""
        if self._useful is None or not self._optional:
            return self._optional
        return self._useful(self._optional, self._required.values())

    def _explored(
        self, start: Iterable[tuple[State, int]], until: int, in_doubt: Collection[Effect]
    ) -> tuple[dict[tuple[State, int], None], dict[tuple[State, int], None]]:
        """What can be reached by effects that are under way, in doubt or loose: (without ``until``, just after it)."""
        reached = dict.fromkeys(start)
        ended: dict[tuple[State, int], None] = {}
        used: dict[tuple[State, int], list[int]] = {}
        todo = deque(reached)
        while todo:
            state, done = todo.popleft()
            for bit, effect in self._choices(done, in_doubt):
                for after in self._apply(state, effect):
                    configuration = self._settled(after, done | bit)
                    if configuration[1] & until:
                        ended[configuration] = None
                    elif configuration not in reached and not self._is_dominated(
                        configuration, used
                    ):
                        self._count()
                        reached[configuration] = None
                        todo.append(configuration)
        return reached, ended

    def _choices(self, done: int, in_doubt: Collection[Effect]) -> Iterator[tuple[int, Effect]]:
        """The effects that may come about next, each with its bit."""
        for bit, effect in self._required.items():
            if not done & bit:
                yield bit, effect
        for effect in in_doubt:
            unused = next((bit for bit in self._optional[effect] if not done & bit), None)
            if unused is not None:
                yield unused, effect
        for effect in self._loose:
            yield 0, effect

    def _settled(self, state: State, done: int) -> tuple[State, int]:
        """The configuration once all that changes no state has happened, as far as the state allows."""
        for bit, effect in self._settling.items():
            if not done & bit and self._apply(state, effect):
                done |= bit
        return state, done

    def _is_dominated(
        self, configuration: tuple[State, int], used: dict[tuple[State, int], list[int]]
    ) -> bool:
        """Whether another like it has used fewer of the operations that need never happen. Notes it if not."""
        if not self._optional_bits:
            return False
        state, done = configuration
        used_bits = done & self._optional_bits
        others = used.setdefault((state, done & ~self._optional_bits), [])
        if any(other & used_bits == other for other in others):
            return True
        others.append(used_bits)
        return False

    def _undominated(self, reached: Iterable[tuple[State, int]]) -> list[tuple[State, int]]:
        fewest_first = sorted(
            reached, key=lambda configuration: (configuration[1] & self._optional_bits).bit_count()
        )
        used: dict[tuple[State, int], list[int]] = {}
        return [
            configuration
            for configuration in fewest_first
            if not self._is_dominated(configuration, used)
        ]

    def _count(self) -> None:
        self._tried += 1
        if self._limit is not None and self._tried > self._limit:
            raise TooManyConfigurations

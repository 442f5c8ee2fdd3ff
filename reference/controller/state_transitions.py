"""What both state machines of the controller share: a transition is checked, made and traced.

Each machine states its table of legal transitions and the work that a transition needs. An illegal transition is
traced with an error and refused; the controller goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)

Key = TypeVar("Key")
State = TypeVar("State", bound=Enum)


class StateTransitions(Generic[Key, State]):
    """The transitions of partitions, or of replicas; ``columns`` are those by which a trace names the key."""

    def __init__(
        self,
        *,
        context: ControllerContext,
        tracer: Tracer,
        valid_previous_states: Mapping[State, Collection[State]],
        state_of: Callable[[Key], State],
        put_state: Callable[[Key, State], None],
        columns: Callable[[Key], dict[str, Any]],
    ) -> None:
        self._context = context
        self._tracer = tracer
        self._valid_previous_states = valid_previous_states
        self._state_of = state_of
        self._put_state = put_state
        self._columns = columns

    def is_legal(self, key: Key, target: State) -> bool:
        """Return whether the key may change to the target state; an illegal transition is traced."""
        state = self._state_of(key)
        if state in self._valid_previous_states[target]:
            return True
        self._trace(key, state, target, error="ILLEGAL_TRANSITION")
        _logger.error("%s cannot go from %s to %s", key, state.value, target.value)
        return False

    def change(self, key: Key, target: State) -> None:
        """Give the key its new state, and trace the transition."""
        state = self._state_of(key)
        self._put_state(key, target)
        self._trace(key, state, target)

    def _trace(self, key: Key, state: State, target: State, error: str | None = None) -> None:
        self._tracer.event(
            Kind.TRANSITION,
            **self._columns(key),
            controller_epoch=self._context.epoch,
            from_state=state.value,
            to_state=target.value,
            error=error,
        )

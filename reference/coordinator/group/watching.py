"""Waiting in a purgatory for what nothing else waits for: what goes wrong is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from nemesis.reference.delayed_operations import DelayedOperation, DelayedOperationPurgatory

_logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)
Results = TypeVar("Results")


def watch(
    purgatory: DelayedOperationPurgatory[Key],
    operation: DelayedOperation[Any, Results],
    key: Key,
    timeout_ms: int,
    respond: Callable[[Results], None],
) -> None:
    """Respond at once to an operation that is complete, else when it is or its time is up."""
    if operation.try_complete(key):
        respond(operation.results())
        return
    waiting = purgatory.watch(operation, [key], timeout_s=timeout_ms / 1000, respond=respond)
    waiting.add_done_callback(_log_failure)


def _log_failure(done: asyncio.Future[Any]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _logger.error("what was to follow a wait has failed", exc_info=error)

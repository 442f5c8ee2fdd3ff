"""A controller resigns whenever `/controller` changes, also when the znode is its own.

The watch fires for the controller's own znode, too. It takes the office up again in the same epoch, after a whole
failover; brokers cannot distinguish the requests of both terms (KAFKA-13407 is about an office without a controller).

Must be caught by: office-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _always(correct: Any) -> Callable[..., Any]:
    resign = methodcaller("_resign", "/controller has changed")

    async def _maybe_resign(controller: Any) -> None:
        await correct(controller)
        if controller.context.fence is not None:
            await resign(controller)

    return _maybe_resign


MUTANT = Mutant(
    name="resigns-from-own-office",
    property="office-kept",
    summary="a controller resigns although /controller is its own",
    replacements=(
        Replacement(
            "nemesis.reference.controller.kafka_controller",
            "KafkaController._maybe_resign",
            _always,
        ),
    ),
)

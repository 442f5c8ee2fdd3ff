"""A controller that has resigned no longer watches `/controller`, so it does not stand for election again.

Its resignation unregisters the handlers of a controller's znodes, and that of `/controller` with them, which every
broker needs for as long as it lives. The broker tries to be elected once more when its next session begins, and never
after that. Once every broker that lives has been the controller, the office stays vacant until a broker starts or gets
a new session. KAFKA-13407 left Kafka without a controller in another way.

Must be caught by: controller-elected-in-time.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _without_the_watch(correct: Any) -> Callable[..., Any]:
    session_of = attrgetter("_zk_client.session")

    async def _resign(controller: Any, reason: str) -> None:
        was_controller = controller.context.fence is not None
        await correct(controller, reason)
        if was_controller:
            session_of(controller).unregister_znode_change_handler("/controller")

    return _resign


MUTANT = Mutant(
    name="resigned-controller-looks-away",
    property="controller-elected-in-time",
    summary="a controller that has resigned no longer watches /controller, so it is not elected again",
    replacements=(
        Replacement(
            "nemesis.reference.controller.kafka_controller",
            "KafkaController._resign",
            _without_the_watch,
        ),
    ),
    scenario="recovery",
)

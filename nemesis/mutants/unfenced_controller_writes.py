"""A controller's writes are not fenced, and are retried in whatever session comes next.

Kafka up to 2.0 wrote partition states without checking the controller epoch, and its ZooKeeper client repeated
an operation across sessions (KAFKA-6082, mended in 2.1 by the multi that checks /controller_epoch). A
controller whose session ends while it handles a broker's failure goes on writing after its successor was
elected.

Must be caught by: stale-controller-fenced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.controller_events import Expire
from nemesis.reference.zk.errors import ConnectionLossError, SessionExpiredError


def _unfenced(_correct: Any) -> Callable[[Any, Sequence[Any], Any], list[Any]]:
    def fenced(_self: Any, ops: Sequence[Any], _fence: Any) -> list[Any]:
        return list(ops)

    return fenced


def _across_sessions(_correct: Any) -> Callable[[Any, Callable[[], Awaitable[Any]]], Any]:
    async def retry_request_until_connected(
        self: Any, request: Callable[[], Awaitable[Any]]
    ) -> Any:
        while True:
            try:
                return await request()
            except (ConnectionLossError, SessionExpiredError):
                await _connected_in_any_session(self)

    return retry_request_until_connected


async def _connected_in_any_session(session: Any) -> None:
    while True:
        try:
            return await session.wait_until_connected()  # type: ignore[no-any-return]
        except SessionExpiredError:
            await session.next_session_change()


def _without_waiting(_correct: Any) -> Callable[[Any], Awaitable[None]]:
    def before_initializing_session(self: Any) -> Awaitable[None]:
        self.event_manager.clear_and_put(Expire())
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    return before_initializing_session


MUTANT = Mutant(
    name="unfenced-controller-writes",
    property="stale-controller-fenced",
    summary="a deposed controller's writes to ZooKeeper are neither fenced nor bound to its session (KAFKA-6082)",
    replacements=(
        Replacement("nemesis.reference.zk.fenced_writes", "FencedWrites.fenced", _unfenced),
        Replacement(
            "nemesis.reference.zk.zookeeper_session",
            "ZooKeeperSession.retry_request_until_connected",
            _across_sessions,
        ),
        Replacement(
            "nemesis.reference.controller.kafka_controller",
            "KafkaController.before_initializing_session",
            _without_waiting,
        ),
    ),
)

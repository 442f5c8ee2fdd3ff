"""A broker asks the controller to let it go: when it is done, when it asks again, and when it gives up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.controlled_shutdown.v3.response import (
    ControlledShutdownResponse,
    RemainingPartition,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from nemesis.reference.model import Broker
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.controlled_shutdown import controlled_shutdown
from nemesis.reference.server.metadata_cache import MetadataCache
from tests.reference.controller.cluster import config
from tests.reference.virtual_time import run

LET_GO = ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())
MOVED = ControlledShutdownResponse(
    error_code=ErrorCode.stale_controller_epoch, remaining_partitions=()
)
REMAINING = ControlledShutdownResponse(
    error_code=ErrorCode.none,
    remaining_partitions=(RemainingPartition(topic_name=TopicName("t"), partition_index=i32(0)),),
)
LOST = NetworkError("reset", definite=False)


class Controller:
    """Answers one request after the other."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Any] = []
        self.is_closed = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        assert (host, port) == ("c", 2)
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, NetworkError):
            raise answer
        return answer

    async def close(self) -> None:
        self.is_closed = True


def cache_that_knows_the_controller() -> MetadataCache:
    cache = MetadataCache(1)
    cache.update(2, 1, [Broker.at(2, "c", 2)], [])
    return cache


def leave(controller: Controller, cache: MetadataCache) -> tuple[bool, float]:
    """Whether it was let go, and after how many seconds."""

    async def test() -> tuple[bool, float]:
        let_go = await controlled_shutdown(
            config(1), metadata_cache=cache, broker_epoch=lambda: 77, connection=controller
        )
        return let_go, asyncio.get_running_loop().time()

    result = run(test())
    assert controller.is_closed
    return result


def test_it_is_let_go_at_once() -> None:
    controller = Controller(LET_GO)
    assert leave(controller, cache_that_knows_the_controller()) == (True, 0)
    assert [(r.broker_id, r.broker_epoch) for r in controller.asked] == [(1, 77)]


@pytest.mark.parametrize("first", [MOVED, REMAINING, LOST])
def test_it_asks_again_after_the_backoff(first: Any) -> None:
    assert leave(Controller(first, LET_GO), cache_that_knows_the_controller()) == (True, 5)


def test_it_gives_up_after_its_retries() -> None:
    controller = Controller(LOST, REMAINING, MOVED)
    assert leave(controller, cache_that_knows_the_controller()) == (False, 10)


def test_without_a_controller_nobody_is_asked() -> None:
    controller = Controller()
    assert leave(controller, MetadataCache(1)) == (False, 10)
    assert controller.asked == []

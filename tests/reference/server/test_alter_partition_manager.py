"""ISR proposals on their way to the controller: sent again until they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.alter_partition.v3.response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i32Timedelta

from nemesis.reference.cluster.partition_state import AlterPartitionItem
from nemesis.reference.model import Broker, LeaderAndIsr, LeaderRecoveryState, TopicPartition
from nemesis.reference.network.errors import RequestTimedOutError
from nemesis.reference.server.alter_partition_manager import DefaultAlterPartitionManager
from nemesis.reference.server.metadata_cache import MetadataCache
from tests.reference.cluster.hosting import TOPIC_ID, config
from tests.reference.virtual_time import run

Outcome = tuple[ErrorCode, LeaderAndIsr | None]


class Controller:
    """Answers by a script."""

    def __init__(self, *script: Callable[[Any], Any]) -> None:
        self.script = list(script)
        self.requests: list[tuple[str, Any]] = []

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        self.requests.append((host, request))
        await asyncio.sleep(0.01)
        return self.script.pop(0)(request)

    async def close(self) -> None:
        pass


def item(partition: int = 0) -> AlterPartitionItem:
    return AlterPartitionItem(
        topic_partition=TopicPartition("t", partition),
        topic_id=TOPIC_ID,
        leader_epoch=4,
        new_isr=((1, 50), (2, 60)),
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        partition_epoch=7,
        controller_epoch=3,
    )


def done(request: Any, error: ErrorCode = ErrorCode.none) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        throttle_time=i32Timedelta.parse(timedelta()),
        error_code=ErrorCode.none,
        topics=tuple(
            TopicData(
                topic_id=topic.topic_id,
                partitions=tuple(
                    PartitionData(
                        partition_index=partition.partition_index,
                        error_code=error,
                        leader_id=BrokerId(1),
                        leader_epoch=partition.leader_epoch,
                        isr=tuple(member.broker_id for member in partition.new_isr_with_epochs),
                        partition_epoch=i32(partition.partition_epoch + 1),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def refused(error: ErrorCode) -> Callable[[Any], AlterPartitionResponse]:
    return lambda _: AlterPartitionResponse(
        throttle_time=i32Timedelta.parse(timedelta()), error_code=error, topics=()
    )


def lost(_: Any) -> Any:
    raise RequestTimedOutError("no answer", definite=False)


def with_controller(
    tmp_path: Path, controller: Controller, scenario: Callable[..., Any], *, known: bool = True
) -> None:
    async def main() -> None:
        cache = MetadataCache(1)
        if known:
            learn(cache, 2)
        manager = DefaultAlterPartitionManager(
            config(tmp_path), metadata_cache=cache, broker_epoch=lambda: 50, connection=controller
        )
        manager.startup()
        await scenario(manager, cache)
        await manager.shutdown()

    run(main())


def learn(cache: MetadataCache, controller_id: int) -> None:
    cache.update(controller_id, 1, [Broker.at(n, f"127.0.0.{n}", 9092) for n in (1, 2, 3)], ())


def submit(
    manager: DefaultAlterPartitionManager, proposal: AlterPartitionItem
) -> asyncio.Future[Outcome]:
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    assert manager.submit(proposal, lambda error, state: future.set_result((error, state)))
    return future


def test_a_proposal_reaches_the_controller_and_its_answer_comes_back(tmp_path: Path) -> None:
    controller = Controller(done)

    async def scenario(manager: DefaultAlterPartitionManager, _: MetadataCache) -> None:
        error, state = await submit(manager, item())
        assert (error, state) == (ErrorCode.none, LeaderAndIsr(1, 4, (1, 2), partition_epoch=8))
        host, request = controller.requests[0]
        assert host == "127.0.0.2"
        assert (request.broker_id, request.broker_epoch) == (1, 50)
        sent = request.topics[0].partitions[0]
        assert [(m.broker_id, m.broker_epoch) for m in sent.new_isr_with_epochs] == [
            (1, 50),
            (2, 60),
        ]
        assert (sent.leader_epoch, sent.partition_epoch) == (4, 7)

    with_controller(tmp_path, controller, scenario)


def test_it_is_sent_again_until_it_is_answered(tmp_path: Path) -> None:
    controller = Controller(
        lost,
        refused(ErrorCode.not_controller),
        refused(ErrorCode.stale_broker_epoch),
        lambda request: done(request).__class__(
            throttle_time=i32Timedelta.parse(timedelta()), error_code=ErrorCode.none, topics=()
        ),
        done,
    )

    async def scenario(manager: DefaultAlterPartitionManager, cache: MetadataCache) -> None:
        answer = submit(manager, item())
        await asyncio.sleep(0.05)
        learn(cache, 3)
        assert (await answer)[0] is ErrorCode.none
        assert [host for host, _ in controller.requests] == ["127.0.0.2"] + ["127.0.0.3"] * 4

    with_controller(tmp_path, controller, scenario)


def test_it_waits_for_a_controller_to_be_known(tmp_path: Path) -> None:
    controller = Controller(done)

    async def scenario(manager: DefaultAlterPartitionManager, cache: MetadataCache) -> None:
        answer = submit(manager, item())
        await asyncio.sleep(5)
        assert controller.requests == []
        learn(cache, 3)
        assert (await answer)[0] is ErrorCode.none

    with_controller(tmp_path, controller, scenario, known=False)


def test_one_proposal_per_partition_and_one_request_for_all(tmp_path: Path) -> None:
    controller = Controller(done)

    async def scenario(manager: DefaultAlterPartitionManager, _: MetadataCache) -> None:
        answers = [submit(manager, item(0)), submit(manager, item(1))]
        assert not manager.submit(item(0), lambda *_: None)
        await asyncio.gather(*answers)
        assert len(controller.requests) == 1

    with_controller(tmp_path, controller, scenario)


def test_an_error_of_a_partition_ends_its_proposal_and_frees_its_place(tmp_path: Path) -> None:
    controller = Controller(lambda request: done(request, ErrorCode.fenced_leader_epoch), done)

    async def scenario(manager: DefaultAlterPartitionManager, _: MetadataCache) -> None:
        second: list[asyncio.Future[Outcome]] = []
        first: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def propose_again(error: ErrorCode, _: LeaderAndIsr | None) -> None:
            first.set_result(error)
            second.append(submit(manager, item()))

        assert manager.submit(item(), propose_again)
        assert await first is ErrorCode.fenced_leader_epoch
        assert (await second[0])[0] is ErrorCode.none

    with_controller(tmp_path, controller, scenario)


def test_an_unforeseen_error_does_not_end_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def bug(_: Any) -> Any:
        raise RuntimeError("bug")

    controller = Controller(bug, done, done)

    async def scenario(manager: DefaultAlterPartitionManager, _: MetadataCache) -> None:
        assert (await submit(manager, item()))[0] is ErrorCode.none
        assert manager.submit(item(1), bug_in_callback)
        assert (await submit(manager, item(2)))[0] is ErrorCode.none

    def bug_in_callback(*_: object) -> None:
        raise RuntimeError("bug in a callback")

    controller.script.append(done)
    with_controller(tmp_path, controller, scenario)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "bug",
        "bug in a callback",
    ]
